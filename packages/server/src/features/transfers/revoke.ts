import { type Address, type Hex, type Network, networkByName } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Recurring } from '../../platform/job.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { lockSource } from '../wallets/index.ts'
import { transferPurpose } from './follow.ts'
import { nextLook } from './pace.ts'
import { allowanceOf, encodeApproval } from './partner.ts'
import { canPay, type Purse, readPurse } from './purse.ts'
import { isApprovalBusy, listToRevoke, lockToRevoke, setRevokeAt } from './revoke-store.ts'
import { listSteps } from './route-store.ts'
import { insertSteps, type TransferRow } from './store.ts'
import { feeOfCall, gasLimitOf } from './weigh.ts'

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
  const approve = steps.find(({ kind }) => kind === 'approve')
  const partner = steps.find(({ kind }) => kind === 'partner')
  if (network === undefined || approve === undefined || partner === undefined)
    return setRevokeAt(ctx.db, transfer.id, null)
  const { sender: owner, toAddress: token } = approve
  const approval = { network, owner, token, spender: partner.toAddress }
  // A transfer that comes after has its own approval take this one's place: taking that back would keep it from going on.
  if (approve.doneAt === null || (await isBusy(ctx.db, approval)))
    return setRevokeAt(ctx.db, transfer.id, nextLook(ctx, transfer.endedAt))
  const allowed = await allowanceOf(ctx.chains.on(network), token, approval)
  if (allowed === 0n) return setRevokeAt(ctx.db, transfer.id, null)
  const tried = steps.filter(({ kind }) => kind === 'revoke').map(({ transactionId }) => transactionId)
  if (tried.length > 0)
    ctx.log.warn({ transferId: transfer.id, tried }, 'an approval was not taken back by what was sent')
  if (tried.length >= triesMax) return leave(ctx, transfer, approval)
  await revoke(ctx, transfer, approval)
}

function isBusy(db: Queryable, { network, ...approval }: Approval): Promise<boolean> {
  return isApprovalBusy(db, { network: network.name, ...approval })
}

/** It is of one amount, and its contract is one that the service knows. */
function leave(ctx: Work, { id: transferId }: TransferRow, { network, ...approval }: Approval): Promise<void> {
  ctx.log.warn({ transferId, network: network.name, ...approval }, 'an approval stays')
  return setRevokeAt(ctx.db, transferId, null)
}

/** Leaves it where the wallet cannot pay for it, or the token refuses. */
async function revoke(ctx: Work, transfer: TransferRow, approval: Approval): Promise<void> {
  const { network, owner, token } = approval
  const purse = await readPurse(ctx, { network, address: owner })
  const data = encodeApproval(approval.spender, 0n)
  const trial = await ctx.chains.on(network).tryCall({ from: owner, to: token, data, value: 0n })
  const gasLimit = trial.ok ? gasLimitOf(trial.gas) : undefined
  if (gasLimit === undefined || purse.left < feeOfCall({ gasLimit, data }, purse.prices))
    return leave(ctx, transfer, approval)
  await store(ctx, transfer, { approval, purse, data, gasLimit })
}

interface Revocation {
  readonly approval: Approval
  readonly purse: Purse
  readonly data: Hex
  readonly gasLimit: bigint
}

/** Under the locks of the wallet, as payer of its own gas too, then of the transfer, which is looked at again whatever comes of it. */
function store(ctx: Work, transfer: TransferRow, { approval, purse, data, gasLimit }: Revocation): Promise<void> {
  const { network, owner: sender, token: toAddress, spender } = approval
  const own = forTenant(ctx, transfer)
  return ctx.db.tx(async (tx) => {
    await lockSource(tx, own.tenant, transfer.walletId)
    await lockSource(tx, own.tenant, sender)
    if (!(await lockToRevoke(tx, transfer.id))) return
    await setRevokeAt(tx, transfer.id, nextLook(ctx, transfer.endedAt))
    // Another approves, takes back or draws on the wallet since it was looked at.
    if ((await isBusy(tx, approval)) || !(await canPay(tx, purse, feeOfCall({ gasLimit, data }, purse.prices)))) return
    const place = { transferId: transfer.id, position: (await listSteps(tx, transfer.id)).length }
    const call = { data, value: 0n, gasLimit }
    const planned = { ...call, network, to: toAddress, purpose: transferPurpose }
    const transactionId = await ctx.lanes.plan(tx, sender, planned)
    await insertSteps(tx, [{ ...place, ...call, kind: 'revoke', sender, toAddress, transactionId }])
    await own.audit(tx, { action: 'transfers.revoke', target: transfer.id, details: { token: toAddress, spender } })
    tx.afterCommit(() => ctx.lanes.notify(network))
  })
}
