import { fundNative, fundToken } from '@purser/devnet'
import { createWalletClient, erc20Abi, http, publicActions, toHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { setBlockTime } from './chain-audit.ts'
import type { Closing } from './closing.ts'
import { figure, sum, table } from './figures.ts'
import { type Ground, startGround } from './ground.ts'
import { postRequest, runLoad } from './load.ts'
import { createPayers, type Payer, signPayments } from './payments.ts'
import { lostOf, type SettleRun, settleOurs, verifyAll } from './settle-runs.ts'
import { otherTenant, type PurserSide, startHome, startPurser } from './sides.ts'

export interface FairnessPlan {
  /** The number of measured settlements of the honest tenant, alone and with the other tenant's load. */
  readonly honest: number
  /** Payments of the other tenant whose payers have spent their money before they are settled. */
  readonly hostile: number
}

export const fullFairness: FairnessPlan = { honest: 200, hostile: 1_000 }
export const quickFairness: FairnessPlan = { honest: 64, hostile: 300 }

const blockSeconds = 2
/** A payer may have 100 payments open at one organisation. */
const openOfPayer = 80
const ratioMax = 2

/**
 * Measures the settlements of a tenant alone, and while another tenant's unfunded payments wait. Returns how many
 * were lost, plus one if the slowest hundredth takes more than twice as long.
 */
export async function benchFairness(plan: FairnessPlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const honest = await startPurser(ground, home)
  closing.add(() => honest.child.stop())
  const hostile = await otherTenant(honest, ground)

  await settleOurs(ground, honest, { count: 64, waiting: true })
  const requests = await plant(ground, hostile, plan.hostile)
  await setBlockTime(ground.chain.rpcUrl, blockSeconds)
  const alone = await settleOurs(ground, honest, { count: plan.honest, waiting: true })
  const hostileRun = await runLoad({ port: hostile.port, connections: 32, requests, msMax: 60_000 })
  const beside = await settleOurs(ground, honest, { count: plan.honest, waiting: true })

  const ratio = beside.p99Ms / alone.p99Ms
  console.log(`\nsettle: 64 in flight, each answer waited for, blocks every ${blockSeconds} s\n`)
  console.log(fairnessTable({ alone, beside }, plan))
  console.log(`\n  ratio (p99 beside / p99 alone): ${figure(ratio)}x, at most ${ratioMax}x`)
  const refused = hostileRun.responses.filter(({ status }) => status !== 202).length
  return sum([alone, beside].map(lostOf)) + refused + (ratio > ratioMax ? 1 : 0)
}

function fairnessTable({ alone, beside }: { alone: SettleRun; beside: SettleRun }, { hostile }: FairnessPlan): string {
  const row = (name: string, run: SettleRun) => [
    name,
    figure(run.p50Ms),
    figure(run.p99Ms),
    figure(run.perSecond),
    String(lostOf(run)),
  ]
  return table(
    ['', 'answer p50 ms', 'p99 ms', 'settled/s', 'lost'],
    [row('alone', alone), row(`beside ${hostile} without money`, beside)],
  )
}

/** Verifies a tenant's payments and takes the money from their payers. Returns the settlement requests. */
async function plant(ground: Ground, side: PurserSide, count: number): Promise<Buffer[]> {
  const payers = createPayers(Math.ceil(count / openOfPayer))
  const funds = ground.bill.rawAmount * BigInt(openOfPayer)
  await Promise.all(payers.map(({ address }) => fundToken(ground.chain, ground.bill.token.symbol, address, funds)))
  const verified = await verifyAll(side, signPayments(payers, ground.bill, count))
  await Promise.all(payers.map((payer) => spendAll(ground, payer, funds)))
  const headers = { ...side.headers, prefer: 'respond-async' }
  return verified.map(({ request }) => postRequest('/payments/settle', request, headers))
}

async function spendAll({ chain, bill }: Ground, { address, privateKey }: Payer, rawAmount: bigint): Promise<void> {
  await fundNative(chain, address, 10n ** 18n)
  const account = privateKeyToAccount(toHex(privateKey))
  const client = createWalletClient({ account, transport: http(chain.rpcUrl) }).extend(publicActions)
  const args = [bill.payTo, rawAmount] as const
  const hash = await client.writeContract({
    chain: null,
    address: bill.token.address,
    abi: erc20Abi,
    functionName: 'transfer',
    args,
  })
  const { status } = await client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  if (status !== 'success') throw new Error('the money of a hostile payer could not be spent')
}
