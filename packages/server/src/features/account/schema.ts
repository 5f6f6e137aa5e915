import { z } from 'zod'
import { id } from '../../platform/ids.ts'

/** The account behind the calling key, and the organisations that it is a member of, the latest first. */
export const Account = z.strictObject({
  id: id('acc'),
  email: z.string(),
  name: z.string().nullable(),
  organisations: z.array(
    z.strictObject({
      id: id('org'),
      name: z.string(),
      type: z.enum(['personal', 'team', 'enterprise']),
      role: z.enum(['owner', 'admin', 'member', 'viewer']),
    }),
  ),
})
export type Account = z.input<typeof Account>
