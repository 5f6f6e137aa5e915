import { l1FeeOf, type Network } from '@purser/protocol'
import { feeOfGas, plainGas } from '../../chain/fees/costs.ts'
import type { OfferedFees } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import type { RecurringTaskByNetwork } from '../../platform/recurring-task.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { topUpOf } from '../funds/index.ts'
import { lockPayer, type Payer, readPayer, storeAuxiliary } from './auxiliary.ts'
import type { Ctx, Deps } from './ports.ts'
import { listWaiting, mayAnyWait, type WaitingRow } from './refill-store.ts'
import { listSteps, lockTransfers } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Milliseconds for which a step may wait for a block before its child is checked. */
const waitMs = 5_000
/** Most children of a network whose coin one run reads, and most of one request. */
const [listedMax, readMax] = [1_000, 100]
/** Most children of a network that one run tops up, and most at the same time. */
const [refilledMax, atOnce] = [100, 8]

/**
 * Sends children another top-up if fees have risen and their call costs more than they have. If the child can pay the current fee, its lane
 * raises the fee by itself. No owner waits for the children of another one. Idempotent: the transfer's lock permits one top-up at a time.
 */
export const refillChildren: RecurringTaskByNetwork<Deps> = {
  name: 'transfers.refill-children',
  everyMs: 2_000,
  networks: ({ chains }) => chains.configured.filter(({ nativeCoin }) => nativeCoin !== null),
  isDue: (networks) => mayAnyWait(networks),
  async runOn(ctx, network) {
    const before = instantOf(ctx.clock.now().getTime() - waitMs)
    const waiting = await listWaiting(ctx.db, { network: network.name, before, most: listedMax })
    if (waiting.length === 0) return
    const short = await shortOf(ctx, network, waiting)
    await inParallel(short.slice(0, refilledMax), atOnce, (one) =>
      refill(ctx, network, one).catch((error: unknown) => {
        ctx.log.warn({ err: error, transferId: one.transferId }, 'a child could not be sent gas; retrying')
      }),
    )
  },
}

/**
 * The children whose coin may not pay the current fee, in their order, except those that lack so much of the amount that no top-up helps. Where the nodes do not agree on the coin of one, all that were read with it
 * are among them: each is read by itself before it is topped up.
 */
async function shortOf(
  { chains }: Pick<Work, 'chains'>,
  network: Network,
  waiting: readonly WaitingRow[],
): Promise<readonly WaitingRow[]> {
  const chain = chains.on(network)
  const fees = await chain.offeredFees()
  const groups = Array.from({ length: Math.ceil(waiting.length / readMax) }, (_, index) =>
    waiting.slice(index * readMax, (index + 1) * readMax),
  )
  const short = groups.map(async (group) => {
    const questions = group.map(({ sender: account }) => ({ account, tokens: [] }))
    const holdings = await chain.agreedHoldings(questions).catch((error: unknown) => {
      if (!isProblem(error, 'chain-unavailable')) throw error
      return []
    })
    return group.filter((one, index) => {
      const native = holdings[index]?.native
      return native === undefined || (native < leastOf(one, fees) && native >= one.value - gasOf(one, fees))
    })
  })
  return (await Promise.all(short)).flat()
}

/** Coin with which a block includes the call, in wei: its amount, and its gas at the base fee. */
function leastOf({ value, gasLimit, dataBytes }: WaitingRow, { baseFee, l1Fee }: OfferedFees): bigint {
  return value + l1FeeOf(l1Fee, dataBytes) + gasLimit * baseFee
}

async function refill(ctx: Work, network: Network, waiting: WaitingRow): Promise<void> {
  const { tenant } = forTenant(ctx, waiting)
  const source = await ctx.findSource(ctx.db, tenant, waiting.walletId)
  if (source === undefined) throw new Error('a transfer from a wallet that does not exist')
  const payer = await readPayer(ctx, tenant, { network, source, payer: 'master' })
  const value = await lackOf(ctx, waiting, payer)
  if (value === 0n) return
  await ctx.lanes.prepare(network, source.masterAddress)
  if (!(await storeRefill(ctx, waiting, { payer, value })))
    ctx.log.warn({ transferId: waiting.transferId, value }, 'a master cannot pay for the gas that its child lacks')
}

/** Coin that the child lacks for the gas of its next call, in wei; zero while a block would include it at the fee that it can pay. */
async function lackOf(
  { chains }: Pick<Work, 'chains'>,
  waiting: WaitingRow,
  { asset: { network }, snapshot: { fees } }: Payer,
): Promise<bigint> {
  const { sender, nonce, value } = waiting
  const chain = chains.on(network)
  const [[holding], next] = await Promise.all([
    chain.agreedHoldings([{ account: sender, tokens: [] }]),
    chain.transactionCount(sender),
  ])
  const native = holding?.native ?? 0n
  if (next !== nonce || native >= leastOf(waiting, fees)) return 0n
  return topUpOf({ gas: gasOf(waiting, fees), value, native })
}

/** The cost of the call's gas at most, in wei, with the fee that it was signed with or the current one. */
function gasOf(waiting: WaitingRow, fees: Pick<OfferedFees, 'maxFee' | 'l1Fee'>): bigint {
  const maxFee = fees.maxFee > waiting.maxFee ? fees.maxFee : waiting.maxFee
  return feeOfGas(waiting, { ...fees, maxFee })
}

/** Stores the top-up under the master's lock, then the transfer's; returns whether the master can pay for it. */
function storeRefill(
  ctx: Pick<Work, 'clock' | 'db' | 'deposits' | 'lanes'>,
  { transferId, isRevoke, sender: toAddress }: WaitingRow,
  { payer, value }: { readonly payer: Payer; readonly value: bigint },
): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    await lockPayer(tx, payer)
    const [transfer] = await lockTransfers(tx, [transferId])
    const steps = await listSteps(tx, transferId)
    const isUnderWay = steps.some(({ kind, doneAt }) => kind === 'refill' && doneAt === null)
    if (transfer === undefined || (transfer.endedAt !== null && !isRevoke) || isUnderWay) return true
    const step = { kind: 'refill', toAddress, data: '0x', value, gasLimit: plainGas } as const
    return storeAuxiliary(ctx, tx, { transferId, payer }, step)
  })
}
