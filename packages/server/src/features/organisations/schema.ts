import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { roles, scopes } from '../../platform/roles.ts'
import { CreatedAt, Instant, InstantInput, PageQuery, periodFilters, text } from '../../platform/wire.ts'
import { PlanName } from '../plans/index.ts'

export const Role = z.enum(roles)
export type Role = z.output<typeof Role>

export const OrganisationType = z.enum(['personal', 'team', 'enterprise'])
export type OrganisationType = z.output<typeof OrganisationType>
export const EnvironmentName = z.enum(['test', 'live'])

/** A name that people choose; it must not be blank. */
const Name = text(200, 1).refine((name) => name.trim() !== '', 'must not be blank')

/** An e-mail address, stored as written; two that differ only in letter case are one account. */
export const Email = z.email().max(254)

export const NewOrganisation = z.strictObject({
  name: Name.describe('Name of the organisation.'),
  type: OrganisationType.default('personal').describe('Type of the organisation.'),
})
export type NewOrganisation = z.output<typeof NewOrganisation>

export const OrganisationChange = z.strictObject({ name: Name.describe('New name of the organisation.') })

export const Organisation = z.strictObject({
  id: id('org'),
  name: z.string().describe('Name of the organisation.'),
  type: OrganisationType.describe('Type of the organisation.'),
  plan: PlanName.describe('Its plan, which sets quotas and limits.'),
  createdAt: CreatedAt,
  suspendedAt: Instant.nullable().describe('When it was suspended; null if it is active.'),
  suspensionReason: z.string().nullable().describe('Why it was suspended; null if it is active.'),
})
export type Organisation = z.input<typeof Organisation>

const KeyLimits = {
  scopes: z
    .array(z.enum(scopes))
    .nullable()
    .meta({ description: 'What the key may be used for; null for everything.' }),
  expiresAt: Instant.nullable().describe('When the key expires; null if it does not.'),
  madeBy: id('key').nullable().meta({ description: 'The key that created it; null if a person or the operator did.' }),
}

/** A new API key. Only this response ever shows `key`. */
export const NewApiKey = z.strictObject({
  id: id('key'),
  name: z.string().describe('Name of the key.'),
  key: z.string().describe('The secret key. It is shown this once.'),
  environment: EnvironmentName.describe('The environment that the key is for.'),
  ...KeyLimits,
  createdAt: CreatedAt,
})
export type NewApiKey = z.input<typeof NewApiKey>

/** `NewApiKey` for paths with `{orgId}`, with fewer members. */
export const NewApiKeyInPath = NewApiKey.pick({ id: true, name: true, key: true, createdAt: true })

export const CreatedOrganisation = Organisation.extend({
  apiKeys: z.array(NewApiKey).describe('The first key, for the test environment.'),
})

/** Scopes in their one order, each once. */
export const Scopes = z
  .array(z.enum(scopes))
  .min(1)
  .max(50)
  .transform((named) => scopes.filter((scope) => named.includes(scope)))

export const ApiKeyRequestInPath = z.strictObject({
  name: Name.describe('A name of your own.'),
  scopes: Scopes.nullish().meta({ description: 'None named: all, or those of the calling key.' }),
  expiresAt: InstantInput.nullish().meta({
    description: 'In the future; no end, or that of the calling key, by default.',
  }),
})
export const ApiKeyRequest = ApiKeyRequestInPath.extend({
  environment: EnvironmentName.describe('The environment that the key is for. A test key creates only test keys.'),
})
export type KeyRequest = z.output<typeof ApiKeyRequest>

/** An API key as lists show it, without its value. `lastUsedAt` is exact to the minute. */
export const ApiKey = z.strictObject({
  id: id('key'),
  name: z.string().describe('Name of the key.'),
  environment: EnvironmentName.describe('The environment that the key is for.'),
  last4: z.string().describe('The last four characters of the key.'),
  ...KeyLimits,
  createdAt: CreatedAt,
  lastUsedAt: Instant.nullable().describe('When it was last used, to the minute; null if it never was.'),
  revokedAt: Instant.nullable().describe('When it was revoked; null while it is valid.'),
})
export type ApiKey = z.input<typeof ApiKey>

export const Revocation = z.strictObject({
  cascade: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .meta({ description: 'Whether the keys that it created, and theirs, end too.' }),
})

/** The keys that a revoked key made: those that ended with it, and those that are still valid. */
export const RevokedKey = z.strictObject({
  ended: z.array(ApiKey).describe('Keys that were revoked with it.'),
  stillValid: z.array(ApiKey).describe('Keys that it created and that are still valid.'),
})
export type RevokedKey = z.input<typeof RevokedKey>

/** `invited` until the person accepts. */
export const Member = z.strictObject({
  accountId: id('acc'),
  email: z.string().nullable().meta({
    description: 'E-mail address of the person; null for an account that was invited by its id and has not accepted.',
  }),
  role: Role.describe('Role of the member.'),
  status: z.enum(['active', 'invited']).describe('`invited` until the person accepts.'),
  environments: z
    .array(EnvironmentName)
    .describe('Where the person works; `test` alone if a test key made the invitation.'),
  createdAt: CreatedAt,
})
export type Member = z.input<typeof Member>

export const NewMember = z
  .strictObject({
    accountId: id('acc').optional().describe('The account to invite, in place of `email`.'),
    email: Email.optional().describe('The e-mail address to invite.'),
    role: Role.default('member').describe('Role of the member.'),
  })
  .refine((body) => (body.accountId === undefined) !== (body.email === undefined), {
    path: ['accountId'],
    message: 'give either accountId or email',
  })
  .meta({ example: { email: 'agent@example.com', role: 'member' } })
export type NewMember = z.output<typeof NewMember>

export const MemberChange = z.strictObject({ role: Role.describe('New role of the member.') })

/** A record of the audit log. `hash` covers the record and `previousHash`; both are SHA-256 in hexadecimal. */
export const AuditLogRecord = z.strictObject({
  id: id('aud'),
  sequence: z.int().describe('Number of the record in the log, from 1.'),
  environment: EnvironmentName.nullable().describe(
    'The environment of the change; null for changes of the organisation as a whole.',
  ),
  action: z.string().describe('The operation, such as `organisations.apiKeys.create`.'),
  actor: z
    .looseObject({ kind: z.enum(['api-key', 'person', 'guest', 'operator', 'system']).describe('Kind of the actor.') })
    .describe('Who made the change: its kind, and its id.'),
  requestId: z.string().describe('Id of the request.'),
  target: z.string().nullable().describe('Id of the changed object; null if there is none.'),
  details: z.record(z.string(), z.unknown()).describe('More about the change. It contains no secret.'),
  createdAt: CreatedAt,
  previousHash: z.string().describe('Hash of the record before; zeros for the first.'),
  hash: z.string().describe('SHA-256 over the record and `previousHash`, in hex.'),
})

export const AuditLogQuery = PageQuery.extend({
  ...periodFilters,
  action: text(64, 1).optional().describe('Only this action, such as `organisations.apiKeys.create`.'),
  target: text(128, 1).optional().meta({ description: 'The id of the changed object.' }),
  actor: z
    .union([id('key'), id('acc')])
    .optional()
    .meta({ description: 'The API key or the account that made the change.' }),
})
export type AuditLogQuery = z.output<typeof AuditLogQuery>

export const MemberParams = z.strictObject({ accountId: id('acc') })
export const ApiKeyParams = z.strictObject({ keyId: id('key') })
export const OrganisationParams = z.strictObject({ orgId: id('org') })
export const ApiKeyInPathParams = z.strictObject({ orgId: id('org'), keyId: id('key') })

named({
  NewOrganisation,
  OrganisationChange,
  Organisation,
  NewApiKey,
  NewApiKeyInPath,
  CreatedOrganisation,
  ApiKeyRequestInPath,
  ApiKeyRequest,
  ApiKey,
  RevokedKey,
  Member,
  NewMember,
  MemberChange,
  AuditLogRecord,
})
