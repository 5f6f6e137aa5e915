import { z } from 'zod'
import { type Id, id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { Instant, text } from '../../platform/wire.ts'

export type SessionId = Id<'sess'>

/** Lifetime of a session in seconds: default, shortest and longest. */
const sessionSeconds = { default: 86_400, min: 60, max: 604_800 } as const

export const NewSession = z.strictObject({
  paymentId: id('pay'),
  expiresIn: z.int().min(sessionSeconds.min).max(sessionSeconds.max).default(sessionSeconds.default).meta({
    description: 'Seconds. Without effect where the payment has a session already.',
  }),
})
export type NewSession = z.output<typeof NewSession>

/** A payment session. */
export const Session = z.strictObject({
  sessionId: id('sess'),
  vaultId: id('vlt'),
  expiresAt: Instant.describe('When the session expires.'),
  isExpired: z.boolean().meta({
    description:
      'Whether the session grants no access any more: it expired or was revoked, its payment failed, or was refunded in full.',
  }),
})
export type Session = z.input<typeof Session>

export const OpenedSession = Session.extend({
  sessionToken: z.string().meta({
    description:
      'The payer sends it in X-Service-Session-Id. Only this response has it; opening the session again replaces it.',
  }),
})
export type OpenedSession = z.input<typeof OpenedSession>

export const SessionParams = z.strictObject({ sessionId: id('sess') })

const WalletId = z
  .string()
  .regex(/^(byw|mwt|cad)_[0-7][0-9a-hjkmnp-tv-z]{25}$/, 'must be the identifier of a wallet (byw_, mwt_ or cad_)')
  .meta({ example: 'byw_01h455vb4pex5vsknk084sn02q' })

/** As a URL names it, with a port that is not the scheme's own. */
const Host = z
  .string()
  .max(260)
  .regex(/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/, 'must be a host, with its port where it has one')
  .meta({ example: 'api.example.com' })

export const VerifySession = z.strictObject({
  sessionToken: text(256, 1).describe('What the payer sent in X-Service-Session-Id.'),
  host: Host.meta({ description: 'The host of the requested route.' }),
  walletId: WalletId.meta({ description: 'The wallet that the route sells for.' }),
  otherWalletIds: z
    .array(WalletId)
    .max(3)
    .default([])
    .meta({ description: 'Others that the route sells for as well.' }),
})
export type VerifySession = z.output<typeof VerifySession>

named({ NewSession, Session, OpenedSession, VerifySession })
