;; Makes the two parity shards P and Q of 4 or 8 data shards.
;;
;; P is the XOR of the data shards. Q is the sum of 2^i times shard i over GF(256) with the
;; polynomial 0x11d, by Horner's rule: doubling a byte is adding it to itself and, where its top bit
;; was set, XOR with 0x1d. Together they are a Reed-Solomon code with two parities.
;;
;; The shards lie `stride` bytes apart: the data from `first` on, then P, then Q. Each turn of the
;; loop takes a step of 64 bytes, four vectors, from each of them. Nothing is a loop inside: that
;; costs 4% of the speed. V8 joins two neighbouring vectors into one of 32 bytes where they share
;; the local that holds their address, `at`.
;;
;; Source: document 1 §2 Replication policies. Compile it with `node test/house/kernels/compile.ts`.
(module
  (import "erasure" "memory" (memory 1))

  ;; `bytes` of each shard; a multiple of 64.
  (func (export "encode")
    (param $first i32) (param $stride i32) (param $shards i32) (param $bytes i32)
    (local $at i32) (local $end i32) (local $to_last i32)
    (local $p0 v128) (local $p1 v128) (local $p2 v128) (local $p3 v128)
    (local $q0 v128) (local $q1 v128) (local $q2 v128) (local $q3 v128)
    (local $d0 v128) (local $d1 v128) (local $d2 v128) (local $d3 v128)
    (local $zero v128) (local $polynomial v128)
    (local.set $polynomial (i8x16.splat (i32.const 0x1d)))
    (local.set $end (i32.add (local.get $first) (local.get $bytes)))
    (local.set $to_last
      (i32.mul (local.get $stride) (i32.sub (local.get $shards) (i32.const 1))))
    (loop $step
      ;; The last shard is the first term of both sums.
      (local.set $at (i32.add (local.get $first) (local.get $to_last)))
      (local.set $q0 (local.tee $p0 (v128.load (local.get $at))))
      (local.set $q1 (local.tee $p1 (v128.load offset=16 (local.get $at))))
      (local.set $q2 (local.tee $p2 (v128.load offset=32 (local.get $at))))
      (local.set $q3 (local.tee $p3 (v128.load offset=48 (local.get $at))))
      (local.set $at (i32.sub (local.get $at) (local.get $stride)))
      (local.set $d0 (v128.load (local.get $at)))
      (local.set $d1 (v128.load offset=16 (local.get $at)))
      (local.set $d2 (v128.load offset=32 (local.get $at)))
      (local.set $d3 (v128.load offset=48 (local.get $at)))
      (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
      (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
      (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
      (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
      (local.set $q0 (v128.xor (local.get $d0) (v128.xor
        (i8x16.add (local.get $q0) (local.get $q0))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
      (local.set $q1 (v128.xor (local.get $d1) (v128.xor
        (i8x16.add (local.get $q1) (local.get $q1))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
      (local.set $q2 (v128.xor (local.get $d2) (v128.xor
        (i8x16.add (local.get $q2) (local.get $q2))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
      (local.set $q3 (v128.xor (local.get $d3) (v128.xor
        (i8x16.add (local.get $q3) (local.get $q3))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))
      (local.set $at (i32.sub (local.get $at) (local.get $stride)))
      (local.set $d0 (v128.load (local.get $at)))
      (local.set $d1 (v128.load offset=16 (local.get $at)))
      (local.set $d2 (v128.load offset=32 (local.get $at)))
      (local.set $d3 (v128.load offset=48 (local.get $at)))
      (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
      (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
      (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
      (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
      (local.set $q0 (v128.xor (local.get $d0) (v128.xor
        (i8x16.add (local.get $q0) (local.get $q0))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
      (local.set $q1 (v128.xor (local.get $d1) (v128.xor
        (i8x16.add (local.get $q1) (local.get $q1))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
      (local.set $q2 (v128.xor (local.get $d2) (v128.xor
        (i8x16.add (local.get $q2) (local.get $q2))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
      (local.set $q3 (v128.xor (local.get $d3) (v128.xor
        (i8x16.add (local.get $q3) (local.get $q3))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))
      (local.set $at (i32.sub (local.get $at) (local.get $stride)))
      (local.set $d0 (v128.load (local.get $at)))
      (local.set $d1 (v128.load offset=16 (local.get $at)))
      (local.set $d2 (v128.load offset=32 (local.get $at)))
      (local.set $d3 (v128.load offset=48 (local.get $at)))
      (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
      (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
      (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
      (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
      (local.set $q0 (v128.xor (local.get $d0) (v128.xor
        (i8x16.add (local.get $q0) (local.get $q0))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
      (local.set $q1 (v128.xor (local.get $d1) (v128.xor
        (i8x16.add (local.get $q1) (local.get $q1))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
      (local.set $q2 (v128.xor (local.get $d2) (v128.xor
        (i8x16.add (local.get $q2) (local.get $q2))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
      (local.set $q3 (v128.xor (local.get $d3) (v128.xor
        (i8x16.add (local.get $q3) (local.get $q3))
        (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))
      (if (i32.gt_u (local.get $shards) (i32.const 4)) (then
        (local.set $at (i32.sub (local.get $at) (local.get $stride)))
        (local.set $d0 (v128.load (local.get $at)))
        (local.set $d1 (v128.load offset=16 (local.get $at)))
        (local.set $d2 (v128.load offset=32 (local.get $at)))
        (local.set $d3 (v128.load offset=48 (local.get $at)))
        (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
        (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
        (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
        (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
        (local.set $q0 (v128.xor (local.get $d0) (v128.xor
          (i8x16.add (local.get $q0) (local.get $q0))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
        (local.set $q1 (v128.xor (local.get $d1) (v128.xor
          (i8x16.add (local.get $q1) (local.get $q1))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
        (local.set $q2 (v128.xor (local.get $d2) (v128.xor
          (i8x16.add (local.get $q2) (local.get $q2))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
        (local.set $q3 (v128.xor (local.get $d3) (v128.xor
          (i8x16.add (local.get $q3) (local.get $q3))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))
        (local.set $at (i32.sub (local.get $at) (local.get $stride)))
        (local.set $d0 (v128.load (local.get $at)))
        (local.set $d1 (v128.load offset=16 (local.get $at)))
        (local.set $d2 (v128.load offset=32 (local.get $at)))
        (local.set $d3 (v128.load offset=48 (local.get $at)))
        (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
        (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
        (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
        (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
        (local.set $q0 (v128.xor (local.get $d0) (v128.xor
          (i8x16.add (local.get $q0) (local.get $q0))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
        (local.set $q1 (v128.xor (local.get $d1) (v128.xor
          (i8x16.add (local.get $q1) (local.get $q1))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
        (local.set $q2 (v128.xor (local.get $d2) (v128.xor
          (i8x16.add (local.get $q2) (local.get $q2))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
        (local.set $q3 (v128.xor (local.get $d3) (v128.xor
          (i8x16.add (local.get $q3) (local.get $q3))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))
        (local.set $at (i32.sub (local.get $at) (local.get $stride)))
        (local.set $d0 (v128.load (local.get $at)))
        (local.set $d1 (v128.load offset=16 (local.get $at)))
        (local.set $d2 (v128.load offset=32 (local.get $at)))
        (local.set $d3 (v128.load offset=48 (local.get $at)))
        (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
        (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
        (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
        (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
        (local.set $q0 (v128.xor (local.get $d0) (v128.xor
          (i8x16.add (local.get $q0) (local.get $q0))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
        (local.set $q1 (v128.xor (local.get $d1) (v128.xor
          (i8x16.add (local.get $q1) (local.get $q1))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
        (local.set $q2 (v128.xor (local.get $d2) (v128.xor
          (i8x16.add (local.get $q2) (local.get $q2))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
        (local.set $q3 (v128.xor (local.get $d3) (v128.xor
          (i8x16.add (local.get $q3) (local.get $q3))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))
        (local.set $at (i32.sub (local.get $at) (local.get $stride)))
        (local.set $d0 (v128.load (local.get $at)))
        (local.set $d1 (v128.load offset=16 (local.get $at)))
        (local.set $d2 (v128.load offset=32 (local.get $at)))
        (local.set $d3 (v128.load offset=48 (local.get $at)))
        (local.set $p0 (v128.xor (local.get $p0) (local.get $d0)))
        (local.set $p1 (v128.xor (local.get $p1) (local.get $d1)))
        (local.set $p2 (v128.xor (local.get $p2) (local.get $d2)))
        (local.set $p3 (v128.xor (local.get $p3) (local.get $d3)))
        (local.set $q0 (v128.xor (local.get $d0) (v128.xor
          (i8x16.add (local.get $q0) (local.get $q0))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q0)) (local.get $polynomial)))))
        (local.set $q1 (v128.xor (local.get $d1) (v128.xor
          (i8x16.add (local.get $q1) (local.get $q1))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q1)) (local.get $polynomial)))))
        (local.set $q2 (v128.xor (local.get $d2) (v128.xor
          (i8x16.add (local.get $q2) (local.get $q2))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q2)) (local.get $polynomial)))))
        (local.set $q3 (v128.xor (local.get $d3) (v128.xor
          (i8x16.add (local.get $q3) (local.get $q3))
          (v128.and (i8x16.gt_s (local.get $zero) (local.get $q3)) (local.get $polynomial)))))))
      (local.set $at
        (i32.add (i32.add (local.get $first) (local.get $to_last)) (local.get $stride)))
      (v128.store (local.get $at) (local.get $p0))
      (v128.store offset=16 (local.get $at) (local.get $p1))
      (v128.store offset=32 (local.get $at) (local.get $p2))
      (v128.store offset=48 (local.get $at) (local.get $p3))
      (local.set $at (i32.add (local.get $at) (local.get $stride)))
      (v128.store (local.get $at) (local.get $q0))
      (v128.store offset=16 (local.get $at) (local.get $q1))
      (v128.store offset=32 (local.get $at) (local.get $q2))
      (v128.store offset=48 (local.get $at) (local.get $q3))
      (local.set $first (i32.add (local.get $first) (i32.const 64)))
      (br_if $step (i32.lt_u (local.get $first) (local.get $end)))))
)
