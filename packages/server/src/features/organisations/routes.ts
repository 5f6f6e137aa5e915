import { chainErrors } from '../../chain/errors.ts'
import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { createApiKey, listKeys, revokeApiKey } from './api-keys.ts'
import { pageOfAuditLog } from './audit-log.ts'
import { deleteOrganisation } from './deletion.ts'
import { fail } from './errors.ts'
import { addMember, changeRole, pageOfMembers, removeMember } from './members.ts'
import { createOrganisation, currentOrganisation, renameOrganisation } from './organisations.ts'
import { type Deps, operation } from './ports.ts'
import * as schema from './schema.ts'

const refusals = fail.table

const organisation: readonly Operation<Deps>[] = [
  operation({
    id: 'organisations.create',
    needs: { role: 'person', scope: 'organisation' },
    method: 'POST',
    path: '/organisations',
    summary: 'Create an organisation, with one test key that only this response shows.',
    description:
      'The account of the caller becomes its owner, and it is on the hobby plan. An account can create at most 10 organisations; one that it gave away still counts, a deleted one for 31 days.',
    input: schema.NewOrganisation,
    output: schema.CreatedOrganisation,
    status: 201,
    errors: {
      'organisation-limit-reached': refusals['organisation-limit-reached'],
      'sign-up-closed': refusals['sign-up-closed'],
    },
    secretResponse: true,
    run: (ctx, { body }) => createOrganisation(ctx, body),
  }),
  operation({
    id: 'organisations.current',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/organisations/current',
    summary: 'Get the organisation of the calling key.',
    description: '`billing.usage` has its usage.',
    output: schema.Organisation,
    run: (ctx) => currentOrganisation(ctx),
  }),
  operation({
    id: 'organisations.update',
    settingCost: 1,
    needs: { role: 'admin', scope: 'organisation' },
    method: 'PATCH',
    path: '/organisations/current',
    summary: 'Rename the organisation.',
    description: 'Everything else stays as it is.',
    input: schema.OrganisationChange,
    output: schema.Organisation,
    run: (ctx, { body }) => renameOrganisation(ctx, body.name),
  }),
  operation({
    id: 'organisations.delete',
    needs: { role: 'owner', scope: 'organisation', fresh: true },
    method: 'DELETE',
    path: '/organisations/{orgId}',
    summary: 'Delete the organisation.',
    description:
      'For an owner who is signed in. Refused while it has money or obligations: `blockers`. Ends keys, memberships, webhooks and vault tokens at once; records stay.',
    params: schema.OrganisationParams,
    errors: {
      'person-required': refusals['person-required'],
      'organisation-not-empty': refusals['organisation-not-empty'],
      'chain-unavailable': chainErrors['chain-unavailable'],
    },
    organisationInPath: true,
    run: (ctx) => deleteOrganisation(ctx),
  }),
  operation({
    id: 'organisations.auditLog',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/organisations/current/audit-log',
    summary: 'List the hash-chained audit log, newest first.',
    description:
      'Each record has the hash of the one before it, so that a later change of any is found. A test key sees records of the test environment and of the organisation as a whole.',
    query: schema.AuditLogQuery,
    output: schema.AuditLogRecord,
    list: true,
    run: (ctx, { query }) => pageOfAuditLog(ctx, query),
  }),
]

const members: readonly Operation<Deps>[] = [
  operation({
    id: 'organisations.members.list',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/organisations/current/members',
    summary: 'List the members, newest first.',
    description: 'Includes open invitations.',
    query: PageQuery,
    output: schema.Member,
    list: true,
    run: (ctx, { query }) => pageOfMembers(ctx, query),
  }),
  operation({
    id: 'organisations.members.add',
    settingCost: 5,
    needs: { role: 'admin', scope: 'organisation' },
    method: 'POST',
    path: '/organisations/current/members',
    summary: 'Add a member by account or by e-mail address.',
    description:
      'The person becomes a member by accepting the invitation. An API key cannot give the roles owner and admin.',
    input: schema.NewMember,
    output: schema.Member,
    status: 201,
    errors: {
      'already-a-member': refusals['already-a-member'],
      'invitation-limit-reached': refusals['invitation-limit-reached'],
    },
    run: (ctx, { body }) => addMember(ctx, body),
  }),
  operation({
    id: 'organisations.members.update',
    settingCost: 1,
    needs: { role: 'admin', scope: 'organisation' },
    method: 'PATCH',
    path: '/organisations/current/members/{accountId}',
    summary: 'Give a member another role.',
    description:
      'An API key can neither grant nor remove the roles owner and admin. A test key cannot change a member who works in the live environment. The last owner stays owner.',
    params: schema.MemberParams,
    input: schema.MemberChange,
    output: schema.Member,
    errors: { 'member-not-found': refusals['member-not-found'], 'last-owner': refusals['last-owner'] },
    run: (ctx, { params, body }) => changeRole(ctx, params.accountId, body.role),
  }),
  operation({
    id: 'organisations.members.remove',
    needs: { role: 'admin', scope: 'organisation' },
    whileSuspended: true,
    method: 'DELETE',
    path: '/organisations/current/members/{accountId}',
    summary: 'Remove a member.',
    description:
      'Their access ends at once. An API key cannot remove an owner or admin. A test key cannot remove a member who works in the live environment. The last owner stays.',
    params: schema.MemberParams,
    errors: { 'member-not-found': refusals['member-not-found'], 'last-owner': refusals['last-owner'] },
    run: (ctx, { params }) => removeMember(ctx, params.accountId),
  }),
]

const limits = {
  'environment-not-allowed': refusals['environment-not-allowed'],
  'key-not-narrower': refusals['key-not-narrower'],
  'api-key-limit-reached': refusals['api-key-limit-reached'],
}
const revocation =
  'Vault tokens, tickets and links that the key made end with it. 200 if keys that it made were valid: `ended` with `cascade=true`, else `stillValid`.'

const apiKeys: readonly Operation<Deps>[] = [
  operation({
    id: 'organisations.apiKeys.create',
    settingCost: 5,
    needs: { role: 'admin', scope: 'organisation' },
    method: 'POST',
    path: '/organisations/current/api-keys',
    summary: 'Create an API key, which only this response shows.',
    description:
      'Store `key`, which cannot be read later. A key creates only keys of its own environment, with its own scopes or fewer.',
    input: schema.ApiKeyRequest,
    output: schema.NewApiKey,
    status: 201,
    secretResponse: true,
    errors: limits,
    run: (ctx, { body }) => createApiKey(ctx, body),
  }),
  operation({
    id: 'organisations.apiKeys.list',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/organisations/current/api-keys',
    summary: 'List API keys, newest first, without their values.',
    description: '`last4` and `lastUsedAt` help to recognize a key.',
    query: PageQuery,
    output: schema.ApiKey,
    list: true,
    run: (ctx, { query }) => listKeys(ctx, query),
  }),
  operation({
    id: 'organisations.apiKeys.revoke',
    needs: { role: 'admin', scope: 'organisation' },
    whileSuspended: true,
    method: 'DELETE',
    path: '/organisations/current/api-keys/{keyId}',
    summary: 'Revoke an API key permanently, at once.',
    description: revocation,
    params: schema.ApiKeyParams,
    query: schema.Revocation,
    otherOutputs: { 200: schema.RevokedKey },
    errors: { 'api-key-not-found': refusals['api-key-not-found'] },
    run: (ctx, { params, query }) => revokeApiKey(ctx, params.keyId, query),
  }),
]

const apiKeysInPath: readonly Operation<Deps>[] = [
  operation({
    id: 'organisations.apiKeys.createIn',
    settingCost: 5,
    needs: { role: 'admin', scope: 'organisation' },
    method: 'POST',
    path: '/organisations/{orgId}/api-keys',
    summary: "Create an API key of the caller's environment, which only this response shows.",
    description: 'As `POST /organisations/current/api-keys`. Store `key`, which cannot be read later.',
    params: schema.OrganisationParams,
    input: schema.ApiKeyRequestInPath,
    output: schema.NewApiKeyInPath,
    status: 201,
    secretResponse: true,
    errors: limits,
    organisationInPath: true,
    async run(ctx, { body }) {
      const { environment } = ctx.tenant
      const { id, name, key, createdAt } = await createApiKey(ctx, { ...body, environment })
      return { id, name, key, createdAt }
    },
  }),
  operation({
    id: 'organisations.apiKeys.listIn',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/organisations/{orgId}/api-keys',
    summary: 'List API keys, newest first, without their values.',
    description: 'As `GET /organisations/current/api-keys`.',
    params: schema.OrganisationParams,
    query: PageQuery,
    output: schema.ApiKey,
    list: true,
    organisationInPath: true,
    run: (ctx, { query }) => listKeys(ctx, query),
  }),
  operation({
    id: 'organisations.apiKeys.revokeIn',
    needs: { role: 'admin', scope: 'organisation' },
    whileSuspended: true,
    method: 'DELETE',
    path: '/organisations/{orgId}/api-keys/{keyId}',
    summary: 'Revoke an API key permanently, at once.',
    description: revocation,
    params: schema.ApiKeyInPathParams,
    query: schema.Revocation,
    otherOutputs: { 200: schema.RevokedKey },
    errors: { 'api-key-not-found': refusals['api-key-not-found'] },
    organisationInPath: true,
    run: (ctx, { params, query }) => revokeApiKey(ctx, params.keyId, query),
  }),
]

export const organisationOperations: readonly Operation<Deps>[] = [
  ...organisation,
  ...members,
  ...apiKeys,
  ...apiKeysInPath,
]
