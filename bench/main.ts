import os from 'node:os'
import { benchAll } from './all.ts'
import { benchChallenge, fullChallenge, quickChallenge } from './challenge.ts'
import { createClosing } from './closing.ts'
import { benchDashboard, fullDashboard, quickDashboard } from './dashboard.ts'
import { benchFairness, fullFairness, quickFairness } from './fairness.ts'
import { benchGrowth, fullGrowth, quickGrowth } from './growth.ts'
import { benchMpp, fullMpp, quickMpp } from './mpp.ts'
import { benchProcesses, fullProcesses, quickProcesses } from './processes.ts'
import { benchSettle, fullSettle, quickSettle } from './settle.ts'
import { benchTransfers, fullTransfers, quickTransfers } from './transfers.ts'
import { benchVaults, fullVaults, largeVaults, quickVaults, vaultParts } from './vaults.ts'
import { benchVerify, fullVerify, quickVerify } from './verify.ts'
import { benchWallets, fullWallets, quickWallets, walletParts } from './wallets.ts'
import { benchWebhooks, fullWebhooks, quickWebhooks } from './webhooks.ts'

const args = process.argv.slice(2)
const quick = args.includes('--quick')
const hasKeys = args.includes('--keys')
const numberOf = (name: string): number | undefined =>
  args.flatMap((arg) => (new RegExp(`^--${name}=\\d{1,12}$`).test(arg) ? [Number(arg.split('=')[1])] : []))[0]
const chosenOf = <P extends string>(parts: readonly P[]): readonly P[] => {
  const chosen = parts.filter((part) => args.includes(`--part=${part}`))
  return chosen.length > 0 ? chosen : parts
}
const vaultsPlan = args.includes('--large') ? largeVaults : fullVaults
const closing = createClosing()
const verifyPlan = quick ? quickVerify : fullVerify
const growthPlan = quick ? quickGrowth : fullGrowth
const payments = numberOf('payments') ?? growthPlan.payments
const benches = {
  challenge: () => benchChallenge(quick ? quickChallenge : fullChallenge, closing),
  mpp: () => benchMpp(quick ? quickMpp : fullMpp, closing),
  verify: () =>
    benchVerify({ ...verifyPlan, connections: numberOf('connections') ?? verifyPlan.connections, hasKeys }, closing),
  processes: () => benchProcesses(quick ? quickProcesses : fullProcesses, closing),
  settle: () => benchSettle(quick ? quickSettle : fullSettle, closing, numberOf('block-gas')),
  growth: () => benchGrowth({ ...growthPlan, payments }, closing),
  fairness: () => benchFairness(quick ? quickFairness : fullFairness, closing),
  dashboard: () => benchDashboard(quick ? quickDashboard : fullDashboard, closing),
  webhooks: () => benchWebhooks(quick ? quickWebhooks : fullWebhooks, closing),
  transfers: () => benchTransfers(quick ? quickTransfers : fullTransfers, closing),
  wallets: () => benchWallets(quick ? quickWallets : fullWallets, closing, chosenOf(walletParts)),
  vaults: () => benchVaults(quick ? quickVaults : vaultsPlan, closing, chosenOf(vaultParts)),
}

const names = Object.keys(benches)
const wanted = args.find((arg) => !arg.startsWith('--'))
if (wanted !== 'all' && !isBench(wanted)) {
  console.error(
    `Say which: npm run bench -- ${['all', ...names].join('|')} [--quick] [--block-gas=<gas>] [--connections=<count>] [--keys] [--payments=<count>] [--part=${[...vaultParts, ...walletParts].join('|')}] [--large]`,
  )
  process.exit(2)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => closing.all().finally(() => process.exit(130)))
}

const runMsMax = wanted === 'growth' || wanted === 'all' ? 3_600_000 : 600_000
setTimeout(() => {
  console.error(`not done after ${runMsMax / 1_000} s; giving up`)
  closing.all().finally(() => process.exit(1))
}, runMsMax).unref()

const flags = args.filter((arg) => arg.startsWith('--'))
process.exit(await run(wanted === 'all' ? () => benchAll(names, flags, closing) : benches[wanted]))

function isBench(name: string | undefined): name is keyof typeof benches {
  return name !== undefined && Object.hasOwn(benches, name)
}

/** Returns the exit code: 0 only if every response was correct, no payment was lost and no target was missed. */
async function run(bench: () => Promise<number>): Promise<number> {
  console.log(
    `${os.cpus().length} x ${os.cpus()[0]?.model}, Node ${process.version}; everything, the load generator too, on this machine`,
  )
  try {
    const wrong = await bench()
    if (wrong > 0) console.log(`\n${wrong} answers were wrong, payments lost or targets missed`)
    return wrong > 0 ? 1 : 0
  } catch (error) {
    console.error(error)
    return 1
  } finally {
    await closing.all()
  }
}
