import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { requireFresh } from '../../../platform/access.ts'
import { appendAudit } from '../../../platform/audit.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import type { Operation } from '../../../platform/operation.ts'
import { Instant } from '../../../platform/wire.ts'
import type { Witness } from '../../../platform/witness/witness.ts'
import { refuseEndedCaller } from '../../callers/index.ts'
import { fail, failPolicy } from '../errors.ts'
import { MasterWalletParams } from '../managed/schema.ts'
import { type Ctx, type Deps, operation } from '../ports.ts'
import { policyChange } from './change.ts'
import { EffectivePolicy, looseningsOf, miscasedTokensOf, PolicyDocument } from './decide.ts'
import { underPolicy } from './refusals.ts'
import { findPolicy, findTenantOfWallet, lockPolicy, type PolicyRow, removePolicy, writePolicy } from './store.ts'

export const WalletPolicy = z.strictObject({
  masterWalletId: id('mwt'),
  policy: EffectivePolicy.nullable().meta({ description: 'The policy; null if none is set, and nothing is limited.' }),
  updatedAt: Instant.nullable().describe('When the policy was last set; null if none was.'),
})
export type WalletPolicy = z.input<typeof WalletPolicy>

named({ WalletPolicy })

const notFound = { 'wallet-not-found': fail.table['wallet-not-found'] }

export const policyRoutes: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.master.policy.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/policy',
    summary: 'Get the spend policy of a managed wallet and its children.',
    description: '`policy` is null if none was set; then nothing is limited.',
    params: MasterWalletParams,
    output: WalletPolicy,
    errors: notFound,
    run: (ctx, { params }) => getPolicy(ctx, params.id),
  }),
  operation({
    id: 'wallets.master.policy.set',
    settingCost: 1,
    needs: { role: 'admin', scope: 'wallets' },
    method: 'PUT',
    path: '/wallet-infra/master-wallets/{id}/policy',
    summary: 'Set or tighten the spend policy of a managed wallet and its children.',
    description:
      'An operation or a token that the policy does not name may not leave; an omitted cap is unlimited. Once set, an API key only tightens it; a person with fresh authentication, or the operator, loosens it.',
    params: MasterWalletParams,
    // The checksum of each recipient is calculated.
    nodesPerToken: 50,
    input: PolicyDocument,
    output: WalletPolicy,
    errors: { ...notFound, 'policy-loosening-denied': failPolicy.table['policy-loosening-denied'] },
    run: (ctx, { params, body }) => tightenPolicy(ctx, params.id, body),
  }),
]

/** Returns the policy, also of the legacy wallet. */
async function getPolicy(
  ctx: Pick<Ctx, 'db' | 'findSource' | 'tenant'>,
  walletId: MasterWalletId,
): Promise<WalletPolicy> {
  if ((await ctx.findSource(ctx.db, ctx.tenant, walletId)) === undefined) throw fail('wallet-not-found')
  return shown(walletId, await findPolicy(ctx.db, ctx.tenant, walletId))
}

/**
 * Replaces the policy with one that is nowhere looser; the first one may be any. A person with fresh authentication may set a looser one. Of two concurrent changes the second is compared with the
 * first. The policy that is set already changes nothing and leaves no audit record.
 */
function tightenPolicy(ctx: Ctx, walletId: MasterWalletId, document: PolicyDocument): Promise<WalletPolicy> {
  refuseMiscased(document)
  return underPolicy(ctx, async (tx) => {
    if (!(await lockPolicy(tx, ctx.tenant, walletId))) throw fail('wallet-not-found')
    await refuseEndedCaller(ctx, tx, 'admin')
    tx.beforeReturn(ctx.witness.cover)
    const before = await findPolicy(tx, ctx.tenant, walletId)
    if (isDeepStrictEqual(before?.document, document)) return shown(walletId, before)
    const looser = looseningsOf(before?.document, document)
    const errors = looser.map((path) => ({ path, message: 'is looser than the policy that is set' }))
    if (errors.length > 0 && ctx.person !== undefined) requireFresh(ctx)
    else if (errors.length > 0) throw failPolicy('policy-loosening-denied', { masterWalletId: walletId, errors })
    const row = { document, updatedAt: ctx.clock.now() }
    await writePolicy(tx, ctx.tenant, walletId, row)
    await ctx.audit(tx, changeOf(walletId, before, document))
    return shown(walletId, row)
  })
}

function refuseMiscased(document: PolicyDocument): void {
  const errors = miscasedTokensOf(document).map(({ given, known }) => ({
    path: `/tokens/${given}`,
    message: `must be "${known}": the symbol of a token is in its own letter case`,
  }))
  if (errors.length > 0) throw failPlatform('validation-error', { errors })
}

/** Context of the operator: no tenant, since the wallet determines it. */
export interface PolicyOperator extends Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId'> {
  readonly witness: Pick<Witness, 'cover'>
}

/** Sets any policy, or with undefined removes it; recorded in the audit log of the wallet's organisation. */
export function overridePolicy(
  operator: PolicyOperator,
  walletId: MasterWalletId,
  document: PolicyDocument | undefined,
): Promise<WalletPolicy> {
  if (document !== undefined) refuseMiscased(document)
  return operator.db.tx(async (tx) => {
    const tenant = await findTenantOfWallet(tx, walletId)
    if (tenant === undefined || !(await lockPolicy(tx, tenant, walletId))) throw fail('wallet-not-found')
    tx.beforeReturn(operator.witness.cover)
    const before = await findPolicy(tx, tenant, walletId)
    const row = document === undefined ? undefined : { document, updatedAt: operator.clock.now() }
    await replace(tx, tenant, walletId, row)
    const { clock, random, actor, requestId } = operator
    await appendAudit({ clock, random, actor, requestId, tenant }, tx, changeOf(walletId, before, document))
    return shown(walletId, row)
  })
}

function replace(tx: Tx, tenant: Tenant, walletId: MasterWalletId, row: PolicyRow | undefined): Promise<void> {
  return row === undefined ? removePolicy(tx, tenant, walletId) : writePolicy(tx, tenant, walletId, row)
}

function changeOf(target: MasterWalletId, before: PolicyRow | undefined, after: PolicyDocument | undefined) {
  return { action: 'wallets.policy.set', target, details: policyChange(before?.document, after) }
}

function shown(masterWalletId: MasterWalletId, row: PolicyRow | undefined): WalletPolicy {
  return { masterWalletId, policy: row?.document ?? null, updatedAt: row?.updatedAt ?? null }
}
