import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { readonly type: 'major' | 'minor'; readonly flavor?: 'last-resort' }) => void

/**
 * Releases memory that only the start of the program needed: V8 lets its young generation grow to 32 MB while a thousand modules are loaded, keeps
 * data of the compiler, and shrinks neither until memory runs short. About a quarter of a fresh process's memory, for 50 to 100 ms once; it grows
 * again under load.
 */
export function releaseStartMemory(): void {
  collector()({ type: 'major', flavor: 'last-resort' })
}

const idleMs = 30_000
const busyShareMax = 0.05
const grownBytesMin = 8 * 2 ** 20

/**
 * Releases memory again after each half minute in which the process was nearly idle and has grown. V8 collects by how much was allocated, so an
 * idle process would otherwise keep the garbage of its background work for hours.
 */
export function releaseMemoryWhenIdle(): void {
  let before = performance.eventLoopUtilization()
  let least = process.memoryUsage.rss()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    const resident = process.memoryUsage.rss()
    least = Math.min(least, resident)
    if (utilization > busyShareMax || resident < least + grownBytesMin) return
    releaseStartMemory()
    least = process.memoryUsage.rss()
  }, idleMs)
  timer.unref()
}

/**
 * Releases recently freed memory. For streams of chunks in external memory: V8 counts it late, and leaves some 60 MB uncollected. One to
 * three milliseconds.
 */
export function releaseRecentMemory(): void {
  collector()({ type: 'minor' })
}

let found: Collect | undefined

/** V8's collector, which is exposed only on request, here and nowhere else in the process. */
function collector(): Collect {
  if (found === undefined) {
    setFlagsFromString('--expose-gc')
    const shown: unknown = runInNewContext('globalThis.gc')
    setFlagsFromString('--no-expose-gc')
    found = typeof shown === 'function' ? (options) => shown(options) : () => undefined
  }
  return found
}
