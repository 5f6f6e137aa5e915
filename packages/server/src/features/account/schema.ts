import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { roles } from '../../platform/roles.ts'
import { Instant } from '../../platform/wire.ts'

const Belonging = z.strictObject({
  id: id('org'),
  name: z.string(),
  type: z.enum(['personal', 'team', 'enterprise']),
  role: z.enum(roles),
})

/** The account behind the calling key, and the organizations that it is a member of, the latest first. */
export const Account = z.strictObject({
  id: id('acc'),
  email: z.string(),
  name: z.string().nullable(),
  organisations: z.array(Belonging),
  invitations: z.array(Belonging.extend({ invitedAt: Instant })).meta({
    description: 'Organisations that invited the account, which has not accepted; `id` names the invitation.',
  }),
})
export type Account = z.input<typeof Account>

export const InvitationParams = z.strictObject({ id: id('org') })

named({ Membership: Belonging, Account })
