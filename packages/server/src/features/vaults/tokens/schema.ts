import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { Instant } from '../../../platform/wire.ts'

const hour = 3_600
/** Seconds that a token lives when nobody says, and at most. */
export const tokenSeconds = { atLeast: 60, byDefault: hour, atMost: 24 * hour } as const
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
    expiresIn: z
      .int()
      .min(tokenSeconds.atLeast)
      .max(tokenSeconds.atMost)
      .optional()
      .meta({ description: 'Seconds; an hour by default. A ticket has its own.' }),
  })
  .refine(({ kind, expiresIn }) => kind === 'token' || expiresIn === undefined, {
    path: ['expiresIn'],
    message: `is not for a ticket, which has ${ticketSeconds} seconds`,
  })
export type NewVaultToken = z.output<typeof NewVaultToken>

export const VaultToken = z.strictObject({
  token: z.string().meta({ description: 'Shown this once.' }),
  vaultId: id('vlt'),
  expiresAt: Instant,
})
export type VaultToken = z.input<typeof VaultToken>
