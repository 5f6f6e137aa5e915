import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { readonly type: 'major' | 'minor'; readonly flavor?: 'last-resort' }) => void

/**
 * Gives back what loading the program took and serving it does not: V8 lets its young generation grow to 32 MB while a
 * thousand modules are read, keeps their compilers' by-products, and would shrink neither before memory runs short. About a
 * quarter of a fresh process's memory, for 50 to 100 ms once; what a load needs grows again.
 */
export function giveBackStartMemory(): void {
  collector()({ type: 'major', flavor: 'last-resort' })
}

/**
 * Gives back what has just been let go of. For a stream of pieces whose memory is not V8's own: it counts them late, and lets
 * some 60 MB of them lie about. One to three milliseconds.
 */
export function giveBackRecentMemory(): void {
  collector()({ type: 'minor' })
}

let found: Collect | undefined

/** V8's collector, which it shows only when it is asked to, here and nowhere else in the process. */
function collector(): Collect {
  if (found === undefined) {
    setFlagsFromString('--expose-gc')
    const shown: unknown = runInNewContext('globalThis.gc')
    setFlagsFromString('--no-expose-gc')
    found = typeof shown === 'function' ? (options) => shown(options) : () => undefined
  }
  return found
}
