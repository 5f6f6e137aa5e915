import type { Network } from '@purser/protocol'
import { pause } from '../../platform/work/loop.ts'

/** Waits for the wake-up or for so long, whichever comes first; without a time, for the wake-up alone. */
export async function waitForWork(woken: Promise<void>, ms: number | undefined, stopped: AbortSignal): Promise<void> {
  if (stopped.aborted) return
  const waiting = new AbortController()
  const stop = (): void => waiting.abort()
  stopped.addEventListener('abort', stop, { once: true })
  await Promise.race([woken, pause(ms ?? waitMsMax, waiting.signal)])
  waiting.abort()
  stopped.removeEventListener('abort', stop)
}

/** Longest that a timer can wait. */
const waitMsMax = 2 ** 31 - 1

/** How often an open lane is looked at: a twentieth of a block, within bounds that suit instant and slow chains alike. */
export function pollMsOf(network: Network): number {
  return Math.min(1_000, Math.max(50, network.blockTimeMs / 20))
}
