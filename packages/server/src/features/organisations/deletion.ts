import type { Auditing } from '../../platform/audit.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { newId, type OrganisationId } from '../../platform/ids.ts'
import { legacyWalletWithCoin } from '../wallets/index.ts'
import { disableWebhooks } from '../webhooks/index.ts'
import { type Acting, auditIn, endKeys, refuseChanged } from './api-keys.ts'
import {
  type Blocker,
  blockerKinds,
  deleteBankAccounts,
  deleteMembers,
  listBlockers,
  lockBankAccounts,
  lockDeleted,
  lockForDeletion,
  markDeleted,
  markRestored,
} from './deletion-store.ts'
import { fail } from './errors.ts'
import { listValidKeys } from './key-store.ts'
import { insertMember } from './member-store.ts'
import type { Ctx } from './ports.ts'
import type { Organisation } from './schema.ts'
import { moveQuotaAccount, upsertAccount } from './store.ts'

/**
 * Deletes the organisation of the caller, an owner who is signed in: its keys, memberships, invitations, webhooks and bank accounts end in one transaction. Throws 409
 * while it has money or obligations, and `chain-unavailable` while the coin of a legacy wallet cannot be read. Its records stay. A payment or a movement that is made at the same moment either is refused, or is found here.
 */
export async function deleteOrganisation(
  ctx: Auditing & Pick<Ctx, 'chains' | 'db' | 'person' | 'tenant' | 'witness'>,
): Promise<void> {
  if (ctx.person === undefined) throw fail('person-required')
  const { organisationId } = ctx.tenant
  // Read without locks first: a refusal then stops no payment.
  await refuseBlocked(ctx.db, organisationId, ctx.clock.now())
  // Of coin no row says that it arrived. A legacy wallet is not retired, which would have read it.
  const wallet = await legacyWalletWithCoin(ctx, organisationId)
  if (wallet !== undefined) throw blockedBy([{ kind: 'wallets', count: 1, ids: [wallet] }])
  return ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    await lockBankAccounts(tx, organisationId)
    const organisation = await lockForDeletion(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    // The operator may have suspended it since the call was admitted: that must not be overwritten.
    if (organisation.suspendedAt !== null) throw failPlatform('organisation-suspended')
    // A change of roles takes the same lock, and may have come first.
    await refuseChanged(ctx, tx)
    await refuseBlocked(tx, organisationId, now)
    const keys = await listValidKeys(tx, organisationId, now)
    tx.beforeReturn(ctx.witness.cover)
    await endKeys(ctx, tx, organisationId, { keys })
    let webhooks = 0
    for (const environment of ['test', 'live'] as const)
      webhooks += await disableWebhooks(tx, { organisationId, environment }, now)
    const bankAccounts = await deleteBankAccounts(tx, organisationId, now)
    await markDeleted(tx, organisationId, now)
    const members = await deleteMembers(tx, organisationId)
    const ended = { keys: keys.length, webhooks, bankAccounts, members }
    const details = { name: organisation.name, plan: organisation.plan, ...ended }
    const entry = { action: 'organisations.delete', target: organisationId, details }
    await auditIn(ctx, tx, { organisationId, environment: null }, entry)
  })
}

/** The words with which a sentence names one of them, and several. */
const words: Readonly<Record<Blocker['kind'], readonly [one: string, several: string]>> = {
  payments: ['payment that is not settled', 'payments that are not settled'],
  transfers: ['transfer that has not ended', 'transfers that have not ended'],
  refunds: ['refund that has not ended', 'refunds that have not ended'],
  withdrawals: [
    'withdrawal that has not ended or may be returned',
    'withdrawals that have not ended or may be returned',
  ],
  approvals: ['movement that waits for approval', 'movements that wait for approval'],
  wallets: ['live wallet that is not empty and retired', 'live wallets that are not empty and retired'],
  vaults: [
    'paid vault that is not sealed or has a valid token',
    'paid vaults that are not sealed or have a valid token',
  ],
  sessions: ['paid session that is valid', 'paid sessions that are valid'],
}

async function refuseBlocked(db: Queryable, organisationId: OrganisationId, now: Date): Promise<void> {
  const blockers = await listBlockers(db, organisationId, now)
  if (blockers.length > 0) throw blockedBy(blockers)
}

function blockedBy(blockers: readonly Blocker[]): Error {
  const inOrder = blockerKinds.flatMap((kind) => blockers.filter((blocker) => blocker.kind === kind))
  const parts = inOrder.map(({ kind, count }) => `${count} ${words[kind][count === 1 ? 0 : 1]}`)
  return fail('organisation-not-empty', {
    detail: `The organisation has ${parts.join(', ')}. Nothing was changed.`,
    blockers: inOrder,
  })
}

/**
 * Restores a deleted organisation as the operator, such as for money that arrived afterwards, with the account of this address as its owner. Its keys,
 * other members, webhooks and bank accounts stay as the deletion left them.
 */
export function restoreOrganisation(ctx: Acting, organisationId: OrganisationId, email: string): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const organisation = await lockDeleted(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    const createdAt = ctx.clock.now()
    const account = { id: newId('acc', ctx), email, name: null, acceptedAt: createdAt, createdAt }
    const { id: accountId } = await upsertAccount(tx, account)
    const invitation = { invitedEmail: null, invitedAs: null, invitedByKey: null, invitedBy: null }
    const joined = { isLive: true, createdAt, acceptedAt: createdAt, ...invitation }
    await insertMember(tx, organisationId, { accountId, role: 'owner', ...joined })
    await moveQuotaAccount(tx, organisationId, 'all-owners')
    await markRestored(tx, organisationId)
    const entry = { action: 'organisations.restore', target: organisationId, details: { owner: accountId } }
    await auditIn(ctx, tx, { organisationId, environment: null }, entry)
    return { ...organisation, suspendedAt: null, suspensionReason: null }
  })
}
