import { parseDuration } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, Instant } from '../../../platform/wire.ts'

const hour = 3_600
/** Lifetime of a token in seconds: shortest, default and longest. */
export const tokenSeconds = { atLeast: 60, byDefault: hour, atMost: 24 * hour } as const
/** Seconds, or a duration such as `1h`, parsed into seconds. */
const ExpiresIn = z
  .union([z.int(), z.string().max(16)])
  .transform((written, ctx) => {
    const seconds = typeof written === 'number' ? written : parseDuration(written)
    if (typeof seconds === 'number' && seconds >= tokenSeconds.atLeast && seconds <= tokenSeconds.atMost) return seconds
    const message = `must be ${tokenSeconds.atLeast} to ${tokenSeconds.atMost} seconds, or a duration from 1m to 24h`
    ctx.addIssue({ code: 'custom', message })
    return z.NEVER
  })
  .meta({ description: 'Seconds or a duration such as `1h`; an hour by default. A ticket has its own.', example: '1h' })

/** Seconds within which a ticket must be used. */
export const ticketSeconds = 60

export const TokenKind = z.enum(['token', 'ticket'])
export type TokenKind = z.output<typeof TokenKind>

export const NewVaultToken = z
  .strictObject({
    kind: TokenKind.default('token').meta({
      description:
        'A ticket opens one stream of events, in an address, within 60 seconds: for browsers, which send no header.',
    }),
    expiresIn: ExpiresIn.optional(),
  })
  .refine(({ kind, expiresIn }) => kind === 'token' || expiresIn === undefined, {
    path: ['expiresIn'],
    message: `is not for a ticket, which has ${ticketSeconds} seconds`,
  })
export type NewVaultToken = z.output<typeof NewVaultToken>

export const VaultToken = z.strictObject({
  id: id('vat'),
  token: z.string().meta({ description: 'Shown this once.' }),
  vaultId: id('vlt'),
  expiresAt: Instant.describe('When the token expires.'),
})
export type VaultToken = z.input<typeof VaultToken>

/** A token or ticket as lists show it, without its text. */
export const VaultTokenRecord = z.strictObject({
  id: id('vat'),
  kind: TokenKind.describe('Whether it is a token or a ticket.'),
  madeBy: z.string().nullable().meta({ description: 'The API key or account that created it.' }),
  expiresAt: Instant.describe('When it expires.'),
  createdAt: CreatedAt,
})

export const VaultTokenParams = z.strictObject({ id: id('vlt'), tokenId: id('vat') })

named({ NewVaultToken, VaultToken, VaultTokenRecord })
