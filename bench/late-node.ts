import { startFaultProxy } from '@purser/devnet'
import { runAsChild, setting } from './child-side.ts'

/** A node some milliseconds away: every request to the chain waits that long. Its own process, so that it slows nobody else. */
await runAsChild(async () => {
  const proxy = await startFaultProxy(setting('BENCH_RPC_URL'))
  proxy.set({ kind: 'delay', delayMs: Number(setting('BENCH_DELAY_MS')) })
  return { ready: { url: proxy.url }, stop: () => proxy.stop() }
})
