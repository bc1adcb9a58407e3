;; The two passes of a resize over RGB pixels: weighted sums of bytes in fixed point.
;;
;; Weights have 22 bits after the point, more than the 16 bits of which a vector multiplies eight at
;; once. So a weight is split into its upper part and its lowest 11 bits. Both are summed apart and
;; joined at the end: the sum is the same to the last bit. Two weights make a pair of 8 bytes: two
;; upper parts, then two lower ones.
;;
;; Source: Pillow, Resample.c; decision 0101. Compile it with `node test/house/kernels/compile.ts`.
(module
  (import "predictor" "memory" (memory 1))

  ;; RGB rows to RGB rows. For each pixel out, `table` has the byte offset of its first pixel in
  ;; and the number of groups of four pixels; its weights follow each other at `weights`. Reads up
  ;; to 15 bytes beyond a row and writes one.
  (func (export "horizontal")
    (param $source i32) (param $target i32) (param $table i32) (param $weights i32)
    (param $rows i32) (param $stride i32) (param $pixels i32)
    (local $entry i32) (local $weight i32) (local $at i32) (local $left i32) (local $groups i32)
    (local $upper v128) (local $lower v128) (local $near v128) (local $far v128)
    (local $first_two v128) (local $last_two v128)
    ;; Where the bytes of two pixels are, as 16-bit numbers: red red, green green, blue blue, none.
    ;; These are set out here, since V8 would make them for each pixel.
    (local.set $first_two
      (v128.const i8x16 0 128 3 128 1 128 4 128 2 128 5 128 128 128 128 128))
    (local.set $last_two
      (v128.const i8x16 6 128 9 128 7 128 10 128 8 128 11 128 128 128 128 128))
    (loop $row
      (local.set $entry (local.get $table))
      (local.set $weight (local.get $weights))
      (local.set $left (local.get $pixels))
      (loop $pixel
        (local.set $at (i32.add (local.get $source) (i32.load (local.get $entry))))
        (local.set $groups (i32.load offset=4 (local.get $entry)))
        (local.set $upper (i32x4.splat (i32.const 0)))
        (local.set $lower (i32x4.splat (i32.const 0)))
        (loop $group
          (local.set $near (v128.load align=1 (local.get $at)))
          (local.set $far (i8x16.relaxed_swizzle (local.get $near) (local.get $last_two)))
          (local.set $near (i8x16.relaxed_swizzle (local.get $near) (local.get $first_two)))
          (local.set $upper (i32x4.add (local.get $upper)
            (i32x4.dot_i16x8_s (local.get $near) (v128.load32_splat (local.get $weight)))))
          (local.set $lower (i32x4.add (local.get $lower)
            (i32x4.dot_i16x8_s (local.get $near) (v128.load32_splat offset=4 (local.get $weight)))))
          (local.set $upper (i32x4.add (local.get $upper)
            (i32x4.dot_i16x8_s (local.get $far) (v128.load32_splat offset=8 (local.get $weight)))))
          (local.set $lower (i32x4.add (local.get $lower)
            (i32x4.dot_i16x8_s (local.get $far) (v128.load32_splat offset=12 (local.get $weight)))))
          (local.set $at (i32.add (local.get $at) (i32.const 12)))
          (local.set $weight (i32.add (local.get $weight) (i32.const 16)))
          (local.set $groups (i32.sub (local.get $groups) (i32.const 1)))
          (br_if $group (local.get $groups)))
        (local.set $lower (i32x4.shr_s
          (i32x4.add
            (i32x4.add (local.get $lower) (i32x4.splat (i32.const 0x200000)))
            (i32x4.shl (local.get $upper) (i32.const 11)))
          (i32.const 22)))
        (v128.store32_lane 0 (local.get $target)
          (i8x16.narrow_i16x8_u
            (i16x8.narrow_i32x4_s (local.get $lower) (local.get $near))
            (local.get $near)))
        (local.set $target (i32.add (local.get $target) (i32.const 3)))
        (local.set $entry (i32.add (local.get $entry) (i32.const 8)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $pixel (local.get $left)))
      (local.set $source (i32.add (local.get $source) (local.get $stride)))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows))))

  ;; The same where five pixels in are enough for each pixel out: 15 bytes of one vector and three
  ;; pairs of weights. Makes four pixels at once, `steps` times a row. Writes four bytes beyond.
  (func (export "narrow")
    (param $source i32) (param $target i32) (param $table i32) (param $weights i32)
    (param $rows i32) (param $stride i32) (param $steps i32)
    (local $entry i32) (local $weight i32) (local $left i32)
    (local $sum0 v128) (local $sum1 v128) (local $sum2 v128) (local $sum3 v128)
    (local $bytes v128) (local $pair v128) (local $upper v128) (local $lower v128)
    (local $first_two v128) (local $middle_two v128) (local $last_one v128) (local $kept v128)
    (local.set $first_two
      (v128.const i8x16 0 128 3 128 1 128 4 128 2 128 5 128 128 128 128 128))
    (local.set $middle_two
      (v128.const i8x16 6 128 9 128 7 128 10 128 8 128 11 128 128 128 128 128))
    (local.set $last_one
      (v128.const i8x16 12 128 128 128 13 128 128 128 14 128 128 128 128 128 128 128))
    ;; Three of each four bytes.
    (local.set $kept
      (v128.const i8x16 0 1 2 4 5 6 8 9 10 12 13 14 128 128 128 128))
    (loop $row
      (local.set $entry (local.get $table))
      (local.set $weight (local.get $weights))
      (local.set $left (local.get $steps))
      (loop $step
        (local.set $bytes (v128.load align=1
          (i32.add (local.get $source) (i32.load (local.get $entry)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $first_two)))
        (local.set $upper
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat (local.get $weight))))
        (local.set $lower
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=4 (local.get $weight))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $middle_two)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=8 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=12 (local.get $weight)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $last_one)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=16 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=20 (local.get $weight)))))
        (local.set $sum0 (i32x4.shr_s
          (i32x4.add
            (i32x4.add (local.get $lower) (i32x4.splat (i32.const 0x200000)))
            (i32x4.shl (local.get $upper) (i32.const 11)))
          (i32.const 22)))
        (local.set $bytes (v128.load align=1
          (i32.add (local.get $source) (i32.load offset=8 (local.get $entry)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $first_two)))
        (local.set $upper
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=24 (local.get $weight))))
        (local.set $lower
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=28 (local.get $weight))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $middle_two)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=32 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=36 (local.get $weight)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $last_one)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=40 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=44 (local.get $weight)))))
        (local.set $sum1 (i32x4.shr_s
          (i32x4.add
            (i32x4.add (local.get $lower) (i32x4.splat (i32.const 0x200000)))
            (i32x4.shl (local.get $upper) (i32.const 11)))
          (i32.const 22)))
        (local.set $bytes (v128.load align=1
          (i32.add (local.get $source) (i32.load offset=16 (local.get $entry)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $first_two)))
        (local.set $upper
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=48 (local.get $weight))))
        (local.set $lower
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=52 (local.get $weight))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $middle_two)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=56 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=60 (local.get $weight)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $last_one)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=64 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=68 (local.get $weight)))))
        (local.set $sum2 (i32x4.shr_s
          (i32x4.add
            (i32x4.add (local.get $lower) (i32x4.splat (i32.const 0x200000)))
            (i32x4.shl (local.get $upper) (i32.const 11)))
          (i32.const 22)))
        (local.set $bytes (v128.load align=1
          (i32.add (local.get $source) (i32.load offset=24 (local.get $entry)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $first_two)))
        (local.set $upper
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=72 (local.get $weight))))
        (local.set $lower
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=76 (local.get $weight))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $middle_two)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=80 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=84 (local.get $weight)))))
        (local.set $pair (i8x16.relaxed_swizzle (local.get $bytes) (local.get $last_one)))
        (local.set $upper (i32x4.add (local.get $upper)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=88 (local.get $weight)))))
        (local.set $lower (i32x4.add (local.get $lower)
          (i32x4.dot_i16x8_s (local.get $pair) (v128.load32_splat offset=92 (local.get $weight)))))
        (local.set $sum3 (i32x4.shr_s
          (i32x4.add
            (i32x4.add (local.get $lower) (i32x4.splat (i32.const 0x200000)))
            (i32x4.shl (local.get $upper) (i32.const 11)))
          (i32.const 22)))
        (v128.store align=1 (local.get $target) (i8x16.relaxed_swizzle
          (i8x16.narrow_i16x8_u
            (i16x8.narrow_i32x4_s (local.get $sum0) (local.get $sum1))
            (i16x8.narrow_i32x4_s (local.get $sum2) (local.get $sum3)))
          (local.get $kept)))
        (local.set $target (i32.add (local.get $target) (i32.const 12)))
        (local.set $entry (i32.add (local.get $entry) (i32.const 32)))
        (local.set $weight (i32.add (local.get $weight) (i32.const 96)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $step (local.get $left)))
      (local.set $source (i32.add (local.get $source) (local.get $stride)))
      (local.set $rows (i32.sub (local.get $rows) (i32.const 1)))
      (br_if $row (local.get $rows))))

  ;; `pairs` of rows, `stride` bytes apart, become one row of `blocks` times 16 bytes.
  (func (export "vertical")
    (param $source i32) (param $target i32) (param $weights i32) (param $pairs i32)
    (param $stride i32) (param $blocks i32)
    (local $at i32) (local $weight i32) (local $left i32)
    (local $upper0 v128) (local $upper1 v128) (local $upper2 v128) (local $upper3 v128)
    (local $lower0 v128) (local $lower1 v128) (local $lower2 v128) (local $lower3 v128)
    (local $low v128) (local $high v128) (local $quarter v128) (local $upper v128)
    (local $lower v128)
    (loop $block
      (local.set $at (local.get $source))
      (local.set $weight (local.get $weights))
      (local.set $left (local.get $pairs))
      (local.set $upper0 (i32x4.splat (i32.const 0)))
      (local.set $upper1 (i32x4.splat (i32.const 0)))
      (local.set $upper2 (i32x4.splat (i32.const 0)))
      (local.set $upper3 (i32x4.splat (i32.const 0)))
      (local.set $lower0 (i32x4.splat (i32.const 0)))
      (local.set $lower1 (i32x4.splat (i32.const 0)))
      (local.set $lower2 (i32x4.splat (i32.const 0)))
      (local.set $lower3 (i32x4.splat (i32.const 0)))
      (loop $pair
        (local.set $low (v128.load align=1 (local.get $at)))
        (local.set $at (i32.add (local.get $at) (local.get $stride)))
        (local.set $quarter (v128.load align=1 (local.get $at)))
        (local.set $at (i32.add (local.get $at) (local.get $stride)))
        ;; The bytes of both rows in turn: two to each pair of weights.
        (local.set $high
          (i8x16.shuffle 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31
            (local.get $low) (local.get $quarter)))
        (local.set $low
          (i8x16.shuffle 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23
            (local.get $low) (local.get $quarter)))
        (local.set $upper (v128.load32_splat (local.get $weight)))
        (local.set $lower (v128.load32_splat offset=4 (local.get $weight)))
        (local.set $quarter (i16x8.extend_low_i8x16_u (local.get $low)))
        (local.set $upper0 (i32x4.add (local.get $upper0)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $upper))))
        (local.set $lower0 (i32x4.add (local.get $lower0)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $lower))))
        (local.set $quarter (i16x8.extend_high_i8x16_u (local.get $low)))
        (local.set $upper1 (i32x4.add (local.get $upper1)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $upper))))
        (local.set $lower1 (i32x4.add (local.get $lower1)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $lower))))
        (local.set $quarter (i16x8.extend_low_i8x16_u (local.get $high)))
        (local.set $upper2 (i32x4.add (local.get $upper2)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $upper))))
        (local.set $lower2 (i32x4.add (local.get $lower2)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $lower))))
        (local.set $quarter (i16x8.extend_high_i8x16_u (local.get $high)))
        (local.set $upper3 (i32x4.add (local.get $upper3)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $upper))))
        (local.set $lower3 (i32x4.add (local.get $lower3)
          (i32x4.dot_i16x8_s (local.get $quarter) (local.get $lower))))
        (local.set $weight (i32.add (local.get $weight) (i32.const 8)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $pair (local.get $left)))
      (local.set $upper0 (i32x4.shr_s
        (i32x4.add
          (i32x4.add (local.get $lower0) (i32x4.splat (i32.const 0x200000)))
          (i32x4.shl (local.get $upper0) (i32.const 11)))
        (i32.const 22)))
      (local.set $upper1 (i32x4.shr_s
        (i32x4.add
          (i32x4.add (local.get $lower1) (i32x4.splat (i32.const 0x200000)))
          (i32x4.shl (local.get $upper1) (i32.const 11)))
        (i32.const 22)))
      (local.set $upper2 (i32x4.shr_s
        (i32x4.add
          (i32x4.add (local.get $lower2) (i32x4.splat (i32.const 0x200000)))
          (i32x4.shl (local.get $upper2) (i32.const 11)))
        (i32.const 22)))
      (local.set $upper3 (i32x4.shr_s
        (i32x4.add
          (i32x4.add (local.get $lower3) (i32x4.splat (i32.const 0x200000)))
          (i32x4.shl (local.get $upper3) (i32.const 11)))
        (i32.const 22)))
      (v128.store align=1 (local.get $target)
        (i8x16.narrow_i16x8_u
          (i16x8.narrow_i32x4_s (local.get $upper0) (local.get $upper1))
          (i16x8.narrow_i32x4_s (local.get $upper2) (local.get $upper3))))
      (local.set $source (i32.add (local.get $source) (i32.const 16)))
      (local.set $target (i32.add (local.get $target) (i32.const 16)))
      (local.set $blocks (i32.sub (local.get $blocks) (i32.const 1)))
      (br_if $block (local.get $blocks))))
)
