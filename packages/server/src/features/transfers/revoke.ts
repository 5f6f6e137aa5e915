import type { Hex, Network } from '@purser/protocol'
import { feeOfCall } from '../../chain/fees/costs.ts'
import { instantOf } from '../../platform/clock.ts'
import { encodeAllowance, encodeApprove } from '../../platform/contract-calls.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import type { RecurringTaskByNetwork } from '../../platform/recurring-task.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { endAllowances, markAllowancesGone } from '../funds/index.ts'
import { lockPayer, nextPollTime, type Payer, readPayer, storeAuxiliary } from './auxiliary.ts'
import { type AllowanceKey, endAllowanceTurns, isAllowanceInUse } from './partner-store.ts'
import type { Ctx, Deps } from './ports.ts'
import {
  countRevocations,
  findLastNonce,
  isAnyToRevoke,
  listToRevoke,
  lockToRevoke,
  setRevokeAt,
} from './refill-store.ts'
import { listSteps, type TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * Revokes the allowances that failed transfers gave a partner's contract: by one more step in the wallet's lane, paid by the wallet. The
 * end of the transfer does not change. Idempotent: the allowance is read once every earlier revocation has ended, and the step is stored under the
 * transfer's lock unless another process has stored one since.
 * Checked until the quorum reads the allowance as zero. Until then what is left of it stays reserved: the contract may take it.
 */
export const revokeApprovals: RecurringTaskByNetwork<Deps> = {
  name: 'transfers.revoke-approvals',
  everyMs: 1_000,
  networks: ({ chains }) => chains.configured,
  isDue: (networks, { clock }) => isAnyToRevoke(networks, clock.now()),
  async runOn(ctx, network) {
    const list = { now: ctx.clock.now(), cursors: ctx.revokedCursors }
    await inParallel(await listToRevoke(ctx.db, network.name, list), atOnce, (transfer) => {
      return check(ctx, network, transfer).catch(async (error: unknown) => {
        ctx.log.warn({ err: error, transferId: transfer.id }, 'an approval could not be checked; retrying')
        await setRevokeAt(ctx.db, transfer.id, nextPollTime(ctx, transfer.endedAt))
      })
    })
  },
}

/** Approvals of a network that are checked at the same time. */
const atOnce = 8

/** Most transactions for one approval; a reverted one costs gas too. */
const triesMax = 3
/** Bounds of the time until the next check of an allowance that cannot be revoked now: an eighth of the time since the transfer ended. */
const [laterMsMin, laterMsMax] = [600_000, 86_400_000]

async function check(ctx: Work, network: Network, transfer: TransferRow): Promise<void> {
  const steps = await listSteps(ctx.db, transfer.id)
  const approve = steps.findLast(({ kind, transactionId }) => kind === 'approve' && transactionId !== null)
  const partner = steps.find(({ kind }) => kind === 'partner')
  if (approve === undefined || partner === undefined) return finish(ctx, transfer, undefined)
  const { sender: owner, toAddress: token } = approve
  const tried = steps.filter(({ kind }) => kind === 'revoke')
  const approval = { network, owner, token, spender: partner.toAddress }
  const isOpen = approve.doneAt === null || tried.some(({ doneAt }) => doneAt === null)
  // Only a transfer from before the queues were stored has its allowance in use by another one.
  if (isOpen || (await isAllowanceInUse(ctx.db, transfer.id, approval)))
    return setRevokeAt(ctx.db, transfer.id, nextPollTime(ctx, transfer.endedAt))
  const { block, allowed } = await allowanceAfter(ctx, transfer, approval)
  if (allowed === undefined) return setRevokeAt(ctx.db, transfer.id, nextPollTime(ctx, transfer.endedAt))
  if (allowed === 0n) return finish(ctx, transfer, block)
  if (tried.length > 0) {
    const transactions = tried.map(({ transactionId }) => transactionId)
    ctx.log.warn({ transferId: transfer.id, tried: transactions }, 'a token approval remains after its revocations')
  }
  if (tried.length >= triesMax) return leaveInPlace(ctx, transfer, approval)
  await revoke(ctx, transfer, { approval, tried: tried.length })
}

interface Allowance {
  readonly block: bigint
  /** Undefined while the quorum cannot read it in a block with all transactions of the transfer. */
  readonly allowed: bigint | undefined
}

/** The allowance in a block with all transactions of the transfer, as the quorum reads it. */
async function allowanceAfter(
  { db, chains }: Pick<Work, 'chains' | 'db'>,
  { id }: TransferRow,
  { network, owner, token, spender }: AllowanceKey,
): Promise<Allowance> {
  const last = await findLastNonce(db, id, owner)
  const { block, values } = await chains.on(network).stateAt([
    { account: owner, count: 'transactions' },
    { account: token, call: encodeAllowance({ owner, spender }) },
  ])
  const [count, allowed] = values
  return { block: block.number, allowed: count === undefined || count <= last ? undefined : allowed }
}

/**
 * Releases the amount, in balances from this block on, and ends the turn, so that the next transfer at the same contract begins. Without a
 * block nothing was approved.
 */
async function finish(
  { db }: Pick<Work, 'db'>,
  { id: transferId }: TransferRow,
  block: bigint | undefined,
): Promise<void> {
  await db.tx(async (tx) => {
    await setRevokeAt(tx, transferId, null)
    if (block === undefined) await endAllowances(tx, [transferId])
    else await markAllowancesGone(tx, [transferId], { block })
    await endAllowanceTurns(tx, [transferId])
  })
}

/**
 * Leaves the allowance in place, and checks it again after ten minutes, later once a day. It is limited to one amount, which stays reserved. The next transfer at the
 * same contract need not wait, since its approval replaces this one.
 */
async function leaveInPlace(
  ctx: Pick<Work, 'clock' | 'db' | 'log'>,
  transfer: TransferRow,
  { network, ...approval }: AllowanceKey,
): Promise<void> {
  ctx.log.warn({ transferId: transfer.id, network: network.name, ...approval }, 'an approval stays in place')
  const now = ctx.clock.now().getTime()
  const sinceMs = now - (transfer.endedAt?.getTime() ?? now)
  await setRevokeAt(ctx.db, transfer.id, instantOf(now + Math.min(laterMsMax, Math.max(laterMsMin, sinceMs / 8))))
  await endAllowanceTurns(ctx.db, [transfer.id])
}

/** Revokes the allowance, or leaves it if the wallet cannot pay or the token refuses. */
async function revoke(
  ctx: Work,
  transfer: TransferRow,
  { approval, tried }: { readonly approval: AllowanceKey; readonly tried: number },
): Promise<void> {
  const { network, owner, token } = approval
  const { tenant } = forTenant(ctx, transfer)
  const source = await ctx.findSource(ctx.db, tenant, transfer.walletId)
  if (source === undefined) throw new Error('a transfer from a wallet that does not exist')
  const payer = await readPayer(ctx, tenant, { network, source, payer: 'source' })
  const data = encodeApprove(approval.spender, 0n)
  const trial = await ctx.chains.on(network).tryCall({ from: owner, to: token, data, value: 0n })
  const gasLimit = trial.ok ? trial.gasLimit : undefined
  if (gasLimit === undefined || payer.available < feeOfCall({ gasLimit, data }, payer.snapshot.fees))
    return leaveInPlace(ctx, transfer, approval)
  await store(ctx, transfer, { approval, tried, payer, data, gasLimit })
}

interface Revocation {
  readonly approval: AllowanceKey
  /** The number of revocations when the allowance was read. */
  readonly tried: number
  readonly payer: Payer
  readonly data: Hex
  readonly gasLimit: bigint
}

/** Stores the step under the lock of the wallet's funds, then of the transfer. The transfer's next check is set in any case. */
function store(
  ctx: ActingCtx & Pick<Work, 'db' | 'deposits' | 'lanes'>,
  transfer: TransferRow,
  { approval, tried, payer, data, gasLimit }: Revocation,
): Promise<void> {
  const { token: toAddress, spender } = approval
  const own = forTenant(ctx, transfer)
  return ctx.db.tx(async (tx) => {
    await lockPayer(tx, payer)
    if (!(await lockToRevoke(tx, transfer.id))) return
    await setRevokeAt(tx, transfer.id, nextPollTime(ctx, transfer.endedAt))
    // Another process has stored one since the allowance was read.
    if ((await countRevocations(tx, transfer.id)) !== tried) return
    // Another transfer approves, revokes or reserves the coin since the wallet was read.
    if (await isAllowanceInUse(tx, transfer.id, approval)) return
    const step = { kind: 'revoke', toAddress, data, value: 0n, gasLimit } as const
    if (!(await storeAuxiliary(ctx, tx, { transferId: transfer.id, payer }, step))) return
    await own.audit(tx, { action: 'transfers.revoke', target: transfer.id, details: { token: toAddress, spender } })
  })
}
