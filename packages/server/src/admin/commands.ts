import { z } from 'zod'
import {
  createKeyAsOperator,
  Email,
  foundOrganisation,
  type NewApiKey,
  OrganisationType,
  Role,
  Scopes,
  setPlan,
  setRoleAsOperator,
  upsertAccount,
} from '../features/organisations/index.ts'
import { freePlan, PlanName, planNames } from '../features/plans/index.ts'
import { id, newId } from '../platform/ids.ts'
import { roles, scopes } from '../platform/roles.ts'
import { InstantInput, text } from '../platform/wire.ts'
import { accessCommands } from './access-commands.ts'
import { archive } from './archive-command.ts'
import { auditCommands } from './audit-commands.ts'
import { type Command, command } from './command.ts'
import { keyCommands } from './key-commands.ts'
import { migrateDatabase } from './migrate-command.ts'
import { setPayoutCustomer } from './payout-command.ts'
import { setPolicy } from './policy-command.ts'
import { recoverChild } from './recover-command.ts'
import { refreshSanctions } from './refresh-sanctions.ts'
import { releaseHold } from './release-hold.ts'
import { restored } from './restored-command.ts'
import { ownersLink, signInLink } from './sign-in-command.ts'
import { unknownCommands } from './unknown-commands.ts'

const Name = text(200, 1)

const createOrganisation = command({
  name: 'create-organisation',
  summary: 'Make an organisation, its owner, a test key and, if live is served, a live key.',
  options: {
    name: 'name of the organisation',
    email: 'e-mail address of the owner; an account is made for an unknown one',
    'owner-name': 'name of the owner (optional)',
    type: `${OrganisationType.options.join(', ')} (default team)`,
    plan: `${planNames.join(', ')} (default ${freePlan})`,
  },
  schema: z.strictObject({
    name: Name,
    email: Email,
    'owner-name': Name.optional(),
    type: OrganisationType.default('team'),
    plan: PlanName.default(freePlan),
  }),
  run: (operator, options) =>
    operator.db.tx(async (tx) => {
      const { name, type, plan, email } = options
      const now = operator.clock.now()
      const person = { id: newId('acc', operator), email, name: options['owner-name'] ?? null }
      const owner = await upsertAccount(tx, { ...person, acceptedAt: now, createdAt: now })
      const { environments } = operator
      const founding = { name, type, plan, ownerId: owner.id, environments }
      const { organisation, apiKeys } = await foundOrganisation(operator, tx, founding)
      const signInUrl = await ownersLink(operator, tx, owner.email)
      const lines = [
        `organisation  ${organisation.id}  ${name} (${type}, ${plan} plan)`,
        `owner         ${owner.id}  ${owner.email}`,
        ...apiKeys.map(keyLine),
        'Keys are shown only once.',
        `sign-in link  ${signInUrl ?? 'set BASE_URL and run purser admin sign-in-link'}`,
        ...(signInUrl === undefined ? [] : ['It works once, within ten minutes.']),
      ]
      return { lines, json: { organisation, owner, apiKeys, signInUrl }, exitCode: 0 }
    }),
})

const createKey = command({
  name: 'create-key',
  summary: 'Make an API key for an organisation; the first live key comes from here.',
  options: {
    organisation: 'id of the organisation (org_…)',
    environment: 'test or live',
    name: 'what the key is for',
    scopes: `${scopes.join(', ')}, with commas between them (default all)`,
    'expires-at': 'when it ends, in ISO 8601 (default never)',
  },
  schema: z.strictObject({
    organisation: id('org'),
    environment: z.enum(['test', 'live']),
    name: Name,
    scopes: z
      .string()
      .transform((names) => names.split(','))
      .pipe(Scopes)
      .optional(),
    'expires-at': InstantInput.optional(),
  }),
  async run(operator, { organisation, environment, name, scopes: named = null, 'expires-at': expiresAt = null }) {
    if (!operator.environments.includes(environment)) {
      const reason = `this deployment does not serve ${environment} (ENVIRONMENTS)`
      return { lines: [reason], json: { error: reason }, exitCode: 1 }
    }
    const key = await createKeyAsOperator(operator, organisation, { environment, name, scopes: named, expiresAt })
    return { lines: [keyLine(key), 'The key is shown only once.'], json: key, exitCode: 0 }
  },
})

const changePlan = command({
  name: 'set-plan',
  summary: 'Put an organisation on another plan.',
  options: { organisation: 'id of the organisation (org_…)', plan: planNames.join(', ') },
  schema: z.strictObject({ organisation: id('org'), plan: PlanName }),
  async run(operator, options) {
    const organisation = await setPlan(operator, options.organisation, options.plan)
    const { name, plan } = organisation
    return { lines: [`${organisation.id}  ${name} is on the ${plan} plan`], json: organisation, exitCode: 0 }
  },
})

const setRole = command({
  name: 'set-role',
  summary: 'Give a member another role, for example to change the owner where nobody signs in.',
  options: {
    organisation: 'id of the organisation (org_…)',
    account: 'id of the account (acc_…)',
    role: roles.join(', '),
  },
  schema: z.strictObject({ organisation: id('org'), account: id('acc'), role: Role }),
  async run(operator, { organisation, account, role }) {
    const member = await setRoleAsOperator(operator, organisation, { accountId: account, role })
    return { lines: [`${member.accountId} is ${member.role} of ${organisation}`], json: member, exitCode: 0 }
  },
})

function keyLine(key: NewApiKey): string {
  return `${`${key.environment} key`.padEnd(12)}  ${key.key}  (${key.id})`
}

export const commands: readonly Command[] = [
  migrateDatabase,
  createOrganisation,
  signInLink,
  createKey,
  ...accessCommands,
  changePlan,
  setRole,
  setPolicy,
  setPayoutCustomer,
  ...auditCommands,
  ...keyCommands,
  refreshSanctions,
  releaseHold,
  restored,
  recoverChild,
  archive,
  ...unknownCommands,
]
