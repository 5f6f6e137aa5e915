import { type Address, type Hex, type Network, networkByName } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Recurring } from '../../platform/job.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { feeOfCall, gasLimitOf } from '../funds/index.ts'
import { findSource } from '../wallets/index.ts'
import { endUnits, isUnitTaken } from './approval-store.ts'
import { lockPayer, type Payer, readPayer, storeAuxiliary } from './auxiliary.ts'
import { nextLook } from './pace.ts'
import { allowanceOf, encodeApproval } from './partner.ts'
import { listToRevoke, lockToRevoke, setRevokeAt } from './revoke-store.ts'
import { listSteps } from './route-store.ts'
import type { TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * Takes back what failed transfers allowed a partner's contract to take: by one step more in the wallet's lane, paid by the wallet. The
 * transfer has ended, and nothing of this changes its end. Harmless twice: what an account allows is read each time, and the step is
 * stored under the transfer's lock. Looked at until nothing is allowed, or a few transactions did not bring that about.
 */
export const revokeApprovals: Recurring = {
  name: 'transfers.revoke-approvals',
  everyMs: 1_000,
  async run(ctx) {
    for (const transfer of await listToRevoke(ctx.db, ctx.clock.now())) {
      try {
        await look(ctx, transfer)
      } catch (error) {
        ctx.log.warn({ err: error, transferId: transfer.id }, 'an approval could not be looked at; it will be again')
        await setRevokeAt(ctx.db, transfer.id, nextLook(ctx, transfer.endedAt))
      }
    }
  },
}

/** What one account lets one contract take of one token. */
interface Approval {
  readonly network: Network
  readonly owner: Address
  readonly token: Address
  readonly spender: Address
}

/** How many transactions are spent on one approval; one that reverts costs its gas all the same. */
const triesMax = 3

async function look(ctx: Work, transfer: TransferRow): Promise<void> {
  const steps = await listSteps(ctx.db, transfer.id)
  const network = networkByName(transfer.fromNetwork)
  const approve = steps.findLast(({ kind, transactionId }) => kind === 'approve' && transactionId !== null)
  const partner = steps.find(({ kind }) => kind === 'partner')
  if (network === undefined || approve === undefined || partner === undefined) return finish(ctx, transfer)
  const { sender: owner, toAddress: token } = approve
  const approval = { network, owner, token, spender: partner.toAddress }
  if (approve.doneAt === null || (await isBusy(ctx.db, transfer, approval)))
    return setRevokeAt(ctx.db, transfer.id, nextLook(ctx, transfer.endedAt))
  const allowed = await allowanceOf(ctx.chains.on(network), token, approval)
  if (allowed === 0n) return finish(ctx, transfer)
  const tried = steps.filter(({ kind }) => kind === 'revoke').map(({ transactionId }) => transactionId)
  if (tried.length > 0)
    ctx.log.warn({ transferId: transfer.id, tried }, 'an approval was not taken back by what was sent')
  if (tried.length >= triesMax) return leave(ctx, transfer, approval)
  await revoke(ctx, transfer, approval)
}

/** Whether another transfer relies on what is approved: only for those that were under way before units were stored. */
function isBusy(db: Queryable, transfer: TransferRow, { network, ...approval }: Approval): Promise<boolean> {
  return isUnitTaken(db, transfer.id, { network: network.name, ...approval })
}

/** The next transfer at the same contract begins. */
async function finish(ctx: Work, { id: transferId }: TransferRow): Promise<void> {
  await setRevokeAt(ctx.db, transferId, null)
  await endUnits(ctx.db, [transferId])
}

/** It is of one amount, and its contract is one that the service knows. */
function leave(ctx: Work, transfer: TransferRow, { network, ...approval }: Approval): Promise<void> {
  ctx.log.warn({ transferId: transfer.id, network: network.name, ...approval }, 'an approval stays')
  return finish(ctx, transfer)
}

/** Leaves it where the wallet cannot pay for it, or the token refuses. */
async function revoke(ctx: Work, transfer: TransferRow, approval: Approval): Promise<void> {
  const { network, owner, token } = approval
  const { tenant } = forTenant(ctx, transfer)
  const source = await findSource(ctx.db, tenant, transfer.walletId)
  if (source === undefined) throw new Error('a transfer out of a wallet that there is not')
  const payer = await readPayer(ctx, tenant, { network, source, payer: 'source' })
  const data = encodeApproval(approval.spender, 0n)
  const trial = await ctx.chains.on(network).tryCall({ from: owner, to: token, data, value: 0n })
  const gasLimit = trial.ok ? gasLimitOf(trial.gas) : undefined
  if (gasLimit === undefined || payer.available < feeOfCall({ gasLimit, data }, payer.snapshot.fees))
    return leave(ctx, transfer, approval)
  await store(ctx, transfer, { approval, payer, data, gasLimit })
}

interface Revocation {
  readonly approval: Approval
  readonly payer: Payer
  readonly data: Hex
  readonly gasLimit: bigint
}

/** Under the lock of the wallet's funds, then of the transfer, which is followed again whatever comes of it. */
function store(ctx: Work, transfer: TransferRow, { approval, payer, data, gasLimit }: Revocation): Promise<void> {
  const { token: toAddress, spender } = approval
  const own = forTenant(ctx, transfer)
  return ctx.db.tx(async (tx) => {
    await lockPayer(tx, payer)
    if (!(await lockToRevoke(tx, transfer.id))) return
    await setRevokeAt(tx, transfer.id, nextLook(ctx, transfer.endedAt))
    // Another transfer approves, takes back or reserves the coin since the wallet was read.
    if (await isBusy(tx, transfer, approval)) return
    const step = { kind: 'revoke', toAddress, data, value: 0n, gasLimit } as const
    if (!(await storeAuxiliary(ctx, tx, { transferId: transfer.id, payer }, step))) return
    await own.audit(tx, { action: 'transfers.revoke', target: transfer.id, details: { token: toAddress, spender } })
  })
}
