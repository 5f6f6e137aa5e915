import { listen, runAsChild, setting } from './child-side.ts'

await runAsChild(async () => {
  setting('BENCH_PURSER')
  const { createServer } = await import('node:http')
  return listen(createServer())
})
