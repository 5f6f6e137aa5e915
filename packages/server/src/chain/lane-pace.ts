import type { Network } from '@purser/protocol'
import { pause } from '../platform/work/runner.ts'

/** Waits for news or the poll, whichever comes first. */
export async function waitForWork(nudged: Promise<void>, ms: number, stopped: AbortSignal): Promise<void> {
  if (stopped.aborted) return
  const waiting = new AbortController()
  const stop = (): void => waiting.abort()
  stopped.addEventListener('abort', stop, { once: true })
  await Promise.race([nudged, pause(ms, waiting.signal)])
  waiting.abort()
  stopped.removeEventListener('abort', stop)
}

/** How often an open lane is looked at: a twentieth of a block, within bounds that suit instant and slow chains alike. */
export function pollMsOf(network: Network): number {
  return Math.min(1_000, Math.max(50, network.blockTimeMs / 20))
}
