/* ISA-L's general Reed-Solomon over the same shards: encode, and rebuild of two data shards.
 * stdin: lines `encode|rebuild DATA_SHARDS BLOB_BYTES RUNS`; stdout: CPU nanoseconds of all runs. */
#include <isa-l.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned char *shard[10], *lost[2];
static unsigned char matrix[10 * 8], left[8 * 8], inverse[8 * 8], rows[2 * 8], tables[32 * 8 * 2];

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(void) {
  char what[16];
  int k, runs;
  long bytes;
  for (int i = 0; i < 10; i++) shard[i] = aligned_alloc(4096, 4 << 20);
  for (int i = 0; i < 2; i++) lost[i] = aligned_alloc(4096, 4 << 20);
  for (int i = 0; i < 10; i++)
    for (long at = 0; at < 4 << 20; at++) shard[i][at] = rand();
  while (scanf("%15s %d %ld %d", what, &k, &bytes, &runs) == 4) {
    long length = bytes / k;
    gf_gen_cauchy1_matrix(matrix, k + 2, k);
    long long begun;
    if (strcmp(what, "encode") == 0) {
      ec_init_tables(k, 2, matrix + k * k, tables);
      begun = now();
      for (int run = 0; run < runs; run++)
        ec_encode_data(length, k, 2, tables, shard, shard + k);
    } else { /* shards 1 and k - 1 are lost */
      unsigned char *given[8];
      int row = 0;
      for (int i = 0; i < k + 2; i++) {
        if (i == 1 || i == k - 1) continue;
        memcpy(left + row * k, matrix + i * k, k);
        given[row++] = shard[i];
      }
      gf_invert_matrix(left, inverse, k);
      memcpy(rows, inverse + k, k);
      memcpy(rows + k, inverse + (k - 1) * k, k);
      ec_init_tables(k, 2, rows, tables);
      begun = now();
      for (int run = 0; run < runs; run++)
        ec_encode_data(length, k, 2, tables, given, lost);
    }
    printf("%lld\n", now() - begun);
    fflush(stdout);
  }
  return 0;
}
