import { z } from 'zod'
import {
  Email,
  listKeysAsOperator,
  listOrganisations,
  restoreOrganisation,
  resumeOrganisation,
  revokeAllKeysAsOperator,
  revokeKeyAsOperator,
  suspendOrganisation,
} from '../features/organisations/index.ts'
import { id } from '../platform/ids.ts'
import { text } from '../platform/wire.ts'
import { type Command, command, linesOr } from './command.ts'

const Limit = z.coerce.number().int().min(1).max(1_000).default(100)
const limitHelp = 'how many, the newest first (default 100, at most 1000)'

const showOrganisations = command({
  name: 'list-organisations',
  summary:
    'List the organisations with their owner, their plan, the number of their valid keys and why one is suspended.',
  options: { find: "an id, or a part of a name or of the owner's e-mail address (optional)", limit: limitHelp },
  schema: z.strictObject({ find: z.string().min(1).optional(), limit: Limit }),
  async run({ db, clock }, { find, limit }) {
    const organisations = await listOrganisations(db, { limit, find, now: clock.now() })
    const lines = organisations.map(
      ({
        id: organisation,
        name,
        plan,
        ownerEmail,
        validKeys,
        createdAt,
        suspendedAt,
        suspensionReason,
        deletedAt,
        receivedAt,
      }) =>
        [
          `${organisation}  ${dayOf(createdAt)}  ${plan.padEnd(10)}  ${keyCount(validKeys).padEnd(7)}  ${ownerEmail ?? '(no owner)'}  ${name}`,
          ...(deletedAt === null ? [] : [`deleted ${dayOf(deletedAt)}`]),
          ...(receivedAt === null ? [] : [`received money ${dayOf(receivedAt)}`]),
          ...(suspendedAt === null || deletedAt !== null
            ? []
            : [`suspended ${dayOf(suspendedAt)}: ${suspensionReason}`]),
        ].join('  '),
    )
    return { lines: linesOr(lines, 'no organisation'), json: organisations, exitCode: 0 }
  },
})

const showKeys = command({
  name: 'list-keys',
  summary: 'List the API keys of an organisation, revoked ones too; a key itself is stored nowhere.',
  options: { organisation: 'id of the organisation (org_…)', limit: limitHelp },
  schema: z.strictObject({ organisation: id('org'), limit: Limit }),
  async run(operator, { organisation, limit }) {
    const now = operator.clock.now()
    const keys = await listKeysAsOperator(operator, organisation, limit)
    const lines = keys.map((key) => {
      const used = key.lastUsedAt === null ? 'never used' : `used ${dayOf(key.lastUsedAt)}`
      return `${key.id}  ${key.environment}  …${key.last4}  ${stateOf(key, now).padEnd(18)}  ${used.padEnd(15)}  ${key.name}`
    })
    return { lines: linesOr(lines, 'no key'), json: keys, exitCode: 0 }
  },
})

const revokeKey = command({
  name: 'revoke-key',
  summary: 'Revoke one API key permanently; no process accepts it any more.',
  options: {
    key: 'id of the key (key_…)',
    cascade: 'yes: revoke the keys that it made too; otherwise they are listed (default no)',
  },
  schema: z.strictObject({ key: id('key'), cascade: z.enum(['yes', 'no']).default('no') }),
  async run(operator, { key, cascade }) {
    const made = await revokeKeyAsOperator(operator, key, { cascade: cascade === 'yes' })
    const lines = [
      `${key} is revoked`,
      ...made.ended.map((one) => `${one.id} is revoked  ${one.name}`),
      ...made.stillValid.map((one) => `${one.id} was made by it and is still valid  ${one.name}`),
    ]
    return { lines, json: { revoked: key, ...made }, exitCode: 0 }
  },
})

const revokeAllKeys = command({
  name: 'revoke-all-keys',
  summary: 'Revoke every API key of an organisation; its members can still sign in to the dashboard.',
  options: { organisation: 'id of the organisation (org_…)' },
  schema: z.strictObject({ organisation: id('org') }),
  async run(operator, { organisation }) {
    const revoked = await revokeAllKeysAsOperator(operator, organisation)
    const lines = revoked.map((key) => `${key.id} is revoked  ${key.environment}  …${key.last4}  ${key.name}`)
    return { lines: linesOr(lines, 'no key was valid'), json: { revoked }, exitCode: 0 }
  },
})

const suspend = command({
  name: 'suspend-organisation',
  summary: 'Let an organisation read only: it sells, pays and changes nothing until it is resumed.',
  options: { organisation: 'id of the organisation (org_…)', reason: 'why; the members of the organisation read it' },
  schema: z.strictObject({ organisation: id('org'), reason: text(500, 1) }),
  async run(operator, { organisation, reason }) {
    const suspended = await suspendOrganisation(operator, organisation, reason)
    const lines = [
      `${organisation}  ${suspended.name} is suspended: ${reason}`,
      'What was paid or begun before still ends. purser admin resume-organisation ends the suspension.',
    ]
    return { lines, json: suspended, exitCode: 0 }
  },
})

const resume = command({
  name: 'resume-organisation',
  summary: 'End the suspension of an organisation.',
  options: { organisation: 'id of the organisation (org_…)' },
  schema: z.strictObject({ organisation: id('org') }),
  async run(operator, { organisation }) {
    const resumed = await resumeOrganisation(operator, organisation)
    return { lines: [`${organisation}  ${resumed.name} is active`], json: resumed, exitCode: 0 }
  },
})

const restore = command({
  name: 'restore-organisation',
  summary: 'Restore an organisation that its owner deleted, such as for money that arrived afterwards.',
  options: { organisation: 'id of the organisation (org_…)', email: 'e-mail address of its owner from now on' },
  schema: z.strictObject({ organisation: id('org'), email: Email }),
  async run(operator, { organisation, email }) {
    const restored = await restoreOrganisation(operator, organisation, email)
    const lines = [
      `${organisation}  ${restored.name} is restored; its owner is ${email}`,
      'It has no keys, and its webhooks are off. purser admin sign-in-link makes a link for its owner.',
    ]
    return { lines, json: restored, exitCode: 0 }
  },
})

export const accessCommands: readonly Command[] = [
  showOrganisations,
  showKeys,
  revokeKey,
  revokeAllKeys,
  suspend,
  resume,
  restore,
]

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}

function keyCount(keys: number): string {
  return keys === 1 ? '1 key' : `${keys} keys`
}

function stateOf({ revokedAt, expiresAt }: { revokedAt: Date | null; expiresAt: Date | null }, now: Date): string {
  if (revokedAt !== null) return `revoked ${dayOf(revokedAt)}`
  if (expiresAt === null) return 'valid'
  return `${expiresAt <= now ? 'expired' : 'until'} ${dayOf(expiresAt)}`
}
