import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { roles } from '../../platform/roles.ts'
import { Instant } from '../../platform/wire.ts'

const Belonging = z.strictObject({
  id: id('org'),
  name: z.string().describe('Name of the organisation.'),
  type: z.enum(['personal', 'team', 'enterprise']).describe('Type of the organisation.'),
  role: z.enum(roles).describe('Role of the account in it.'),
})

/** The account behind the calling key, and the organizations that it is a member of, the latest first. */
export const Account = z.strictObject({
  id: id('acc'),
  email: z.string().describe('E-mail address of the account.'),
  name: z.string().nullable().describe('Name of the person; null if none is known.'),
  organisations: z.array(Belonging).describe('Organisations of the account, the latest first.'),
  invitations: z.array(Belonging.extend({ invitedAt: Instant.describe('When the account was invited.') })).meta({
    description: 'Organisations that invited the account, which has not accepted; `id` names the invitation.',
  }),
})
export type Account = z.input<typeof Account>

export const InvitationParams = z.strictObject({ id: id('org') })

named({ Membership: Belonging, Account })
