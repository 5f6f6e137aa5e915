import { fundNative, fundToken, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { type Child, startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { type CpuUse, type Watched, watchCpu } from './cpu.ts'
import { checkTarget, figure, median, quantile, sum, table } from './figures.ts'
import { type Ground, startGround } from './ground.ts'
import { type LoadResponse, postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { createPayers } from './payments.ts'
import { type PurserSide, startHome, startPurser } from './sides.ts'
import { benchSigning } from './signing.ts'

export interface TransfersPlan {
  readonly rounds: number
  /** Transfers of a round, on each side. */
  readonly count: number
  readonly signingMs: number
}

export const fullTransfers: TransfersPlan = { rounds: 3, count: 640, signingMs: 1_500 }
export const quickTransfers: TransfersPlan = { rounds: 1, count: 256, signingMs: 500 }

const inFlight = 64
const manyWallets = 50
const runMsMax = 120_000
/** viem's receipt poll interval. Its default for this chain is 1,000 ms, which would make viem look slow. */
const receiptPollMs = 50
const rawAmount = 10_000n
const rawFunds = 10n ** 12n
const nativeFunds = 10n ** 20n

/** One of the two sides, and how to request a transfer from its n-th wallet. */
interface Sender {
  readonly name: string
  readonly port: number
  readonly watched: readonly Watched[]
  request(wallet: number, to: Address): Buffer
  isRight(response: LoadResponse): boolean
}

interface Run {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly lost: number
  readonly twice: number
  readonly cpu: CpuUse
  readonly count: number
  readonly fault: string | undefined
}

/**
 * Compares token transfers up to the receipt, from one wallet and from fifty, with viem on the same node, in turn.
 * Returns how many of ours were lost or sent twice, plus one if one wallet was slower than viem's.
 */
export async function benchTransfers(plan: TransfersPlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const side = await startPurser(ground, home)
  closing.add(() => side.child.stop())
  const senders = [await oursOn(ground, side), await viemOn(ground, closing)] as const
  for (const sender of senders)
    for (const wallets of [1, manyWallets]) await burst(ground, sender, { wallets, count: 64 })
  let wrong = 0
  for (const wallets of [1, manyWallets]) wrong += await compare(ground, senders, { ...plan, wallets })
  const profile = await profileOf(ground, senders[0], side.child, plan.count)
  console.log(`\nwhere the time of ours goes, one wallet: ${profile}`)
  return wrong + (await benchSigning(3, plan.signingMs))
}

async function oursOn({ chain }: Ground, side: PurserSide): Promise<Sender> {
  const wanted = JSON.stringify({ chain: 'base', supportedTokens: ['USDC'] })
  const requests = Array.from({ length: manyWallets }, () =>
    postRequest('/wallet-infra/master-wallets', wanted, side.headers),
  )
  const { responses } = await runLoad({ port: side.port, connections: 4, requests, msMax: runMsMax })
  const wallets = responses.map(({ body }) => parseObject(body))
  await fund(
    chain,
    wallets.map(({ address }) => String(address)),
  )
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '0.01' }
  return {
    name: 'purser',
    port: side.port,
    watched: side.watched,
    request(wallet, toAddress) {
      const body = { fromWalletId: wallets[wallet]?.id, toAddress, ...usual }
      return postRequest('/wallet-infra/transfer', JSON.stringify(body), side.headers)
    },
    isRight: ({ status, body }) => status === 201 && parseObject(body).status === 'confirmed',
  }
}

async function viemOn({ chain }: Ground, closing: Closing): Promise<Sender> {
  const child = await startChild('viem-sender.ts', {
    BENCH_RPC_URL: chain.rpcUrl,
    BENCH_RECEIPT_POLL_MS: String(receiptPollMs),
    BENCH_TOKEN: chain.tokens.USDC ?? '',
    BENCH_WALLETS: String(manyWallets),
  })
  closing.add(() => child.stop())
  await fund(chain, child.ready('addresses').split(' '))
  return {
    name: 'viem writeContract, nonceManager',
    port: Number(child.ready('port')),
    watched: [{ name: 'service', pid: child.pid }],
    request: (wallet, to) => postRequest('/', JSON.stringify({ wallet, to, rawAmount: String(rawAmount) })),
    isRight: ({ status }) => status === 201,
  }
}

async function fund(chain: Ground['chain'], addresses: readonly string[]): Promise<void> {
  for (const text of addresses) {
    if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new Error(`no wallet: ${text}`)
    const address: Address = `0x${text.slice(2)}`
    await fundNative(chain, address, nativeFunds)
    await fundToken(chain, 'USDC', address, rawFunds)
  }
}

interface Burst {
  readonly wallets: number
  readonly count: number
}

/** Each transfer has a new recipient, whose balance shows whether it arrived. */
async function burst({ chain }: Ground, sender: Sender, { wallets, count }: Burst): Promise<Run> {
  const recipients = createPayers(count).map(({ address }) => address)
  const requests = recipients.map((to, index) => sender.request(index % wallets, to))
  const used = watchCpu([...sender.watched, { name: 'anvil', pid: chain.pid }])
  const { responses, elapsedMs } = await runLoad({
    port: sender.port,
    connections: inFlight,
    requests,
    msMax: runMsMax,
  })
  const cpu = used()
  const balances = await Promise.all(recipients.map((to) => tokenBalance(chain, 'USDC', to)))
  const right = responses.filter(sender.isRight).length
  const arrived = balances.filter((raw) => raw >= rawAmount).length
  const ms = responses.map((response) => response.ms)
  const bad = responses.find((response) => !sender.isRight(response))
  return {
    perSecond: (Math.min(right, arrived) / elapsedMs) * 1_000,
    p50Ms: quantile(ms, 0.5),
    p99Ms: quantile(ms, 0.99),
    lost: count - Math.min(right, arrived),
    twice: balances.filter((raw) => raw > rawAmount).length,
    cpu,
    count,
    fault: bad && `${bad.status} ${bad.body.slice(0, 300)}`,
  }
}

async function compare(
  ground: Ground,
  senders: readonly [Sender, Sender],
  { rounds, count, wallets }: TransfersPlan & Burst,
): Promise<number> {
  const runs: { readonly ours: Run; readonly viem: Run }[] = []
  for (let round = 0; round < rounds; round += 1) {
    const ours = await burst(ground, senders[0], { wallets, count })
    runs.push({ ours, viem: await burst(ground, senders[1], { wallets, count }) })
  }
  const ours = runs.map((run) => run.ours)
  const viem = runs.map((run) => run.viem)
  const from = wallets === 1 ? 'one wallet' : `${wallets} wallets`
  console.log(`\ntransfers from ${from}: ${inFlight} in flight, a block per transaction, ${rounds} rounds in turn\n`)
  const head = [
    '',
    'transfers/s',
    'p50 ms',
    'p99 ms',
    'service CPU ms',
    'PostgreSQL',
    'anvil',
    'requested',
    'lost',
    'twice',
  ]
  console.log(table(head, [rowOf(senders[0].name, ours), rowOf(senders[1].name, viem)]))
  const ratio = median(runs.map((run) => run.ours.perSecond / run.viem.perSecond))
  console.log(`  ratio (ours / viem, median of the rounds): ${figure(ratio)}x`)
  const missed = wallets === 1 ? checkTarget('ratio', ratio, { min: 1.2 }) : 0
  for (const { fault } of [...ours, ...viem]) if (fault !== undefined) console.log(`  WRONG: ${fault}`)
  return sum(ours.map(({ lost, twice }) => lost + twice)) + missed
}

function rowOf(name: string, runs: readonly Run[]): string[] {
  const mid = (read: (run: Run) => number) => figure(median(runs.map(read)))
  const cpu = (process: string) => mid(({ cpu: { byName }, count }) => (byName.get(process) ?? 0) / count)
  return [
    name,
    mid(({ perSecond }) => perSecond),
    mid(({ p50Ms }) => p50Ms),
    mid(({ p99Ms }) => p99Ms),
    cpu('service'),
    cpu('PostgreSQL'),
    cpu('anvil'),
    String(sum(runs.map(({ count }) => count))),
    String(sum(runs.map(({ lost }) => lost))),
    String(sum(runs.map(({ twice }) => twice))),
  ]
}

async function profileOf(ground: Ground, sender: Sender, child: Child, count: number): Promise<string> {
  const shares = await child.profileDuring(() => burst(ground, sender, { wallets: 1, count }))
  const largest = [...shares].toSorted(([, left], [, right]) => right - left).slice(0, 8)
  return largest.map(([place, share]) => `${place} ${figure(share * 100)}%`).join(', ')
}
