import { spawn } from 'node:child_process'
import path from 'node:path'

/**
 * Runs a simulator over many seeds: `npm run sim -- <settlement|wallets> [count] [--seeds=<count>] [--seed=<seed>] [--from=<seed>]`; with
 * `--faults` over a service with faults in it.
 */
const args = process.argv.slice(2)
const [wanted = '', counted] = args.filter((arg) => !arg.startsWith('--'))
const option = (name: string): string | undefined =>
  args.flatMap((arg) => new RegExp(`^--${name}=(\\d{1,9})$`).exec(arg)?.[1] ?? [])[0]

const tests = new Map([
  ['settlement', 'settlement-sim.test.ts'],
  ['wallets', 'wallet-sim.test.ts'],
])
const test = tests.get(wanted)
const count = option('seeds') ?? counted ?? '5000'
if (test === undefined || !/^\d{1,9}$/.test(count)) {
  console.error(
    'Say what and how often: npm run sim -- <settlement|wallets> [count] [--seed=<seed>] [--from=<seed>] [--faults]',
  )
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
const named = areFaults ? 'finds each planted fault' : 'their guarantees|its guarantees'
const child = spawn(process.execPath, [vitest, 'run', `packages/server/test/${test}`, '-t', named], {
  cwd: root,
  env: { ...process.env, ...settings },
  stdio: 'inherit',
})
child.on('exit', (code) => process.exit(code ?? 1))
