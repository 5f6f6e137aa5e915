import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Closing } from './closing.ts'
import { table } from './figures.ts'

const main = fileURLToPath(new URL('main.ts', import.meta.url))

/**
 * Runs every benchmark in its own process, one after the other. Returns the number of benchmarks with wrong responses
 * or a missed target.
 */
export async function benchAll(names: readonly string[], flags: readonly string[], closing: Closing): Promise<number> {
  const rows: string[][] = []
  let missed = 0
  for (const name of names) {
    console.log(`\n=== ${name}\n`)
    const beganMs = performance.now()
    const child = spawn(process.execPath, [main, name, ...flags], { stdio: 'inherit' })
    closing.add(async () => {
      child.kill('SIGTERM')
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) missed += 1
    rows.push([name, ((performance.now() - beganMs) / 1_000).toFixed(0), code === 0 ? 'met' : 'missed'])
  }
  console.log(`\n${table(['', 'seconds', 'targets'], rows)}`)
  return missed
}
