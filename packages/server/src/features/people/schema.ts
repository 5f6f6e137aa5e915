import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { CreatedAt, Instant } from '../../platform/wire.ts'

/** A session of a person: a browser in which they are signed in. Its token is shown nowhere. */
export const SignInSession = z.strictObject({
  id: id('ssn'),
  createdAt: CreatedAt,
  expiresAt: Instant.describe('When the session expires.'),
  ipAddress: z.string().nullable().describe('IP address of the browser; null if not known.'),
  userAgent: z.string().nullable().describe('User-Agent of the browser; null if not known.'),
  isCurrent: z.boolean().meta({ description: 'Whether this session makes the request.' }),
})
export type SignInSession = z.input<typeof SignInSession>

export const SessionParams = z.strictObject({ id: id('ssn') })

named({ SignInSession })
