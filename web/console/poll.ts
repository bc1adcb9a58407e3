/** Polls: one run after the other, and only while the page is visible. */

export interface Poller {
  /** Runs at once, or again after the current run. */
  readonly now: () => void
  readonly stop: () => void
}

/** Runs `work` now, and again `ms()` after each run ends; `work` must not throw. */
export const poll = (work: () => Promise<void>, ms: () => number): Poller => {
  let timer: ReturnType<typeof setTimeout> | undefined
  let is_running = false
  let is_requested = false
  let is_stopped = false
  const run = async () => {
    clearTimeout(timer)
    if (is_stopped) return
    if (is_running) {
      is_requested = true
      return
    }
    is_running = true
    await work()
    is_running = false
    if (is_requested) {
      is_requested = false
      void run()
    } else if (!document.hidden) {
      timer = setTimeout(() => void run(), ms())
    }
  }
  const onVisible = () => {
    if (!document.hidden && !is_running) void run()
  }
  document.addEventListener("visibilitychange", onVisible)
  void run()
  return {
    now: () => void run(),
    stop: () => {
      is_stopped = true
      clearTimeout(timer)
      document.removeEventListener("visibilitychange", onVisible)
    },
  }
}
