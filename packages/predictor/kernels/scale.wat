;; Bytes become numbers: the entry of a table for each byte.
;;
;; Source: decision 0101. Compile it with `node test/house/kernels/compile.ts`.
(module
  (import "predictor" "memory" (memory 1))

  ;; `steps` times four bytes, each `apart` from the one before it, become floats side by side.
  (func (export "scale")
    (param $source i32) (param $target i32) (param $table i32) (param $apart i32)
    (param $steps i32)
    (loop $step
      ;; A float is copied as its 32 bits.
      (i32.store (local.get $target)
        (i32.load (i32.add (local.get $table)
          (i32.shl (i32.load8_u (local.get $source)) (i32.const 2)))))
      (local.set $source (i32.add (local.get $source) (local.get $apart)))
      (i32.store offset=4 (local.get $target)
        (i32.load (i32.add (local.get $table)
          (i32.shl (i32.load8_u (local.get $source)) (i32.const 2)))))
      (local.set $source (i32.add (local.get $source) (local.get $apart)))
      (i32.store offset=8 (local.get $target)
        (i32.load (i32.add (local.get $table)
          (i32.shl (i32.load8_u (local.get $source)) (i32.const 2)))))
      (local.set $source (i32.add (local.get $source) (local.get $apart)))
      (i32.store offset=12 (local.get $target)
        (i32.load (i32.add (local.get $table)
          (i32.shl (i32.load8_u (local.get $source)) (i32.const 2)))))
      (local.set $source (i32.add (local.get $source) (local.get $apart)))
      (local.set $target (i32.add (local.get $target) (i32.const 16)))
      (local.set $steps (i32.sub (local.get $steps) (i32.const 1)))
      (br_if $step (local.get $steps))))
)
