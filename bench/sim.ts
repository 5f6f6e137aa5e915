import { spawn } from 'node:child_process'
import path from 'node:path'

/** Runs the simulator of settlement over many seeds: `npm run sim -- settlement [count] [--seed=<seed>] [--from=<seed>]`; with `--faults` over a service with faults in it. */
const args = process.argv.slice(2)
const [wanted, count = '5000'] = args.filter((arg) => !arg.startsWith('--'))
const option = (name: string): string | undefined =>
  args.flatMap((arg) => new RegExp(`^--${name}=(\\d{1,9})$`).exec(arg)?.[1] ?? [])[0]

if (wanted !== 'settlement' || !/^\d{1,9}$/.test(count)) {
  console.error('Say what and how often: npm run sim -- settlement [count] [--seed=<seed>] [--from=<seed>] [--faults]')
  process.exit(2)
}

const [seed, from] = [option('seed'), option('from')]
const areFaults = args.includes('--faults')
const settings = {
  SIM_SEEDS: count,
  SIM_FIRST: from ?? '1',
  ...(seed !== undefined && { SIM_SEED: seed }),
  ...(areFaults && { SIM_FAULTS: 'all' }),
}
const root = path.dirname(import.meta.dirname)
const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
const named = areFaults ? 'finds each fault' : 'keeps its promises'
const child = spawn(process.execPath, [vitest, 'run', 'packages/server/test/settlement-sim.test.ts', '-t', named], {
  cwd: root,
  env: { ...process.env, ...settings },
  stdio: 'inherit',
})
child.on('exit', (code) => process.exit(code ?? 1))
