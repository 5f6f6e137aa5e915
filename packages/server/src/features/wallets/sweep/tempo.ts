import { type Address, encodeTransfer, type Network, tokenBySymbol } from '@purser/protocol'
import type { PlannedTransaction } from '../../../chain/port.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { assignReservations } from '../../funds/index.ts'
import { frozenOnes } from './frozen.ts'
import { endPlanned } from './outcome.ts'
import { gasOfTempoTransfer } from './request.ts'
import { tempoSweepPurpose } from './tempo-handler.ts'
import { assignTransaction, countSent, listExpired, listPlanned, lockPlanned, markTried } from './tempo-store.ts'
import { subjectOf, type TransferRow } from './transfer-store.ts'

type System = Omit<Ctx, 'tenant'>

/** Children whose transactions are under way at once on a network, and those that are tried at the same moment. */
const sentMax = 200
const atOnce = 8
/** Until its block a transaction may have to offer more: the sponsor holds this many times what it offers now. */
const feeRoom = 2n
const attodollarsPerUnit = 10n ** 12n

/**
 * Sweeps on Tempo, whose tokens take no authorisations and whose transactions may be paid for by somebody else: each child sends its own
 * (0x76) from its lane, and the operator's account sponsors its fee. The transfer was stored before; here it is tied to its transaction and
 * nonce in one commit, once, so that running twice sends nothing twice.
 */
export const sweepOnTempo: Recurring = {
  name: 'wallets.sweep-on-tempo',
  everyMs: 500,
  async run(ctx) {
    for (const network of ctx.chains.configured) {
      if (network.nativeCoin !== null) continue
      await passTempo(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'sweeps on Tempo could not go on; they stay waiting'),
      )
    }
  },
}

async function passTempo(ctx: System, network: Network): Promise<void> {
  await endExpired(ctx, network)
  const sent = await countSent(ctx.db, network.name)
  const asked = { most: Math.max(0, sentMax - sent) }
  const waiting = await listPlanned(ctx.db, network.name, asked)
  if (waiting.length === 0) return
  const fee = await feeToPay(ctx, network)
  const affordable = fee.affordable - BigInt(sent)
  if (affordable < BigInt(waiting.length))
    ctx.log.error({ network: network.name }, 'the sponsor holds too little for the fees of all sweeps; the rest waits')
  const transfers = waiting.slice(0, Number(affordable < 0n ? 0n : affordable))
  await markTried(ctx.db, transfers)
  const workers = Array.from({ length: Math.min(atOnce, transfers.length) }, async () => {
    for (let transfer = transfers.shift(); transfer !== undefined; transfer = transfers.shift())
      await safely(ctx, transfer, send(ctx, network, { transfer, feeToken: fee.token }))
  })
  await Promise.all(workers)
}

async function endExpired(ctx: System, network: Network): Promise<void> {
  const expired = await listExpired(ctx.db, network.name, ctx.clock.now(), sentMax)
  await markTried(ctx.db, expired)
  for (const transfer of expired) await safely(ctx, transfer, endPlanned(ctx, transfer, 'authorization-expired'))
}

/** One that cannot be gone on with keeps none behind it waiting; until it expires it is tried again, after those that were tried less often. */
async function safely(ctx: System, { sweepId, childAddressId }: TransferRow, step: Promise<void>): Promise<void> {
  await step.catch((error: unknown) =>
    ctx.log.warn(
      { err: error, sweepId, childAddressId },
      'a transfer of a sweep could not be gone on with; tried again',
    ),
  )
}

/** What the sponsor pays in, as it pays the fees of payers, and for how many children it has enough. */
async function feeToPay(ctx: System, network: Network): Promise<{ token: Address; affordable: bigint }> {
  const token = (tokenBySymbol(network, 'pathUSD') ?? network.tokens[0])?.address
  if (token === undefined) throw new Error(`${network.name} has no token to pay a fee in`)
  const chain = ctx.chains.on(network)
  const [{ maxFee }, [held = 0n]] = await Promise.all([
    chain.offeredFees(),
    chain.balances([{ token, account: ctx.settlerAddress }]),
  ])
  const cost = (gasOfTempoTransfer * maxFee * feeRoom) / attodollarsPerUnit + 1n
  return { token, affordable: held / cost }
}

interface Turn {
  readonly transfer: TransferRow
  readonly feeToken: Address
}

async function send(ctx: System, network: Network, { transfer, feeToken }: Turn): Promise<void> {
  const refusal = await refusalNow(ctx, network, transfer)
  if (refusal !== undefined) return endPlanned(ctx, transfer, refusal)
  await ctx.lanes.prepare(network, transfer.fromAddress)
  const planned = { network, ...callOf(transfer), ...sponsoredBy(feeToken) }
  const isFrozen = await ctx.db.tx(async (tx) => {
    const held = await lockPlanned(tx, transfer, 'screened')
    if (held === undefined) return false
    if ((await frozenOnes(tx, [held])).size > 0) return true
    const transactionId = await ctx.lanes.plan(tx, held.fromAddress, planned)
    await assignTransaction(tx, [held], transactionId)
    await assignReservations(tx, { subjectId: subjectOf(held), part: 0 }, transactionId)
    tx.afterCommit(() => ctx.lanes.notify(network))
    return false
  })
  if (isFrozen) await endPlanned(ctx, transfer, 'amount-frozen')
}

function callOf({ asset: to, toAddress, rawAmount }: TransferRow): Pick<PlannedTransaction, 'to' | 'data' | 'value'> {
  return { to, data: encodeTransfer(toAddress, rawAmount), value: 0n }
}

function sponsoredBy(feeToken: Address) {
  return { feeToken, isSponsored: true, gasLimit: gasOfTempoTransfer, purpose: tempoSweepPurpose } as const
}

/** Why the latest block would not move the money; a refused transfer would be at the sponsor's expense. */
async function refusalNow(ctx: System, network: Network, transfer: TransferRow): Promise<string | undefined> {
  const { asset: token, fromAddress: account, rawAmount } = transfer
  const chain = ctx.chains.on(network)
  const [held = 0n] = await chain.balances([{ token, account }])
  if (held < rawAmount) return 'insufficient-balance'
  const trial = await chain.tryCall({ from: account, ...callOf(transfer) })
  return trial.ok ? undefined : 'transfer-refused'
}
