import { parseDuration, parseUsd, usdDecimals } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { ChainName } from '../chains/index.ts'

const WalletId = z.union([id('byw'), id('mwt'), id('cad')])

export const NewTestDeposit = z
  .strictObject({
    walletId: WalletId.describe('The wallet or child address that receives the money.'),
    token: z.string().min(1).max(32).describe('Symbol of the token.'),
    amount: z.string().min(1).max(100).meta({ description: 'Decimal amount in whole tokens, at most 10000.' }),
  })
  .meta({ example: { walletId: 'mwt_01h455vb4pex5vsknk084sn02q', token: 'USDC', amount: '12.5' } })
export type NewTestDeposit = z.output<typeof NewTestDeposit>

export const TestDeposit = z.strictObject({
  walletId: WalletId.describe('The wallet or child address that receives the money.'),
  chain: ChainName,
  token: z.string().describe('Symbol of the token.'),
  amount: z.string().describe('Amount in whole tokens.'),
  from: z.string().meta({ description: 'The faucet.' }),
  to: z.string().describe('Address of the wallet.'),
  status: z.literal('queued').describe('The deposit will be sent.'),
})
export type TestDeposit = z.input<typeof TestDeposit>

/** Most dollars of one test payment. */
const priceMax = 10n ** BigInt(usdDecimals)

export const NewTestPayment = z
  .strictObject({
    walletId: WalletId.describe('The wallet that is paid.'),
    price: z
      .string()
      .max(20)
      .refine((price) => {
        const usd = parseUsd(price)
        return usd !== undefined && usd > 0n && usd <= priceMax
      }, 'must be a decimal amount above 0 and at most 1')
      .default('0.01')
      .meta({ description: 'Decimal US dollars, at most 1.' }),
  })
  .meta({ example: { walletId: 'byw_01h455vb4pex5vsknk084sn02q', price: '0.01' } })
export type NewTestPayment = z.output<typeof NewTestPayment>

/** Most seconds of one advance: a year. */
const advanceMax = 366 * 86_400

export const NewClockChange = z
  .strictObject({
    advance: z
      .union([z.int(), z.string().max(16)])
      .transform((written, ctx) => {
        const seconds = typeof written === 'number' ? written : parseDuration(written)
        if (typeof seconds === 'number' && seconds >= 1 && seconds <= advanceMax) return seconds
        ctx.addIssue({ code: 'custom', message: `must be 1 to ${advanceMax} seconds, or a duration from 1m to 366d` })
        return z.NEVER
      })
      .meta({ description: 'Seconds or a duration such as `25h`, at most 366 days.', example: '25h' }),
  })
  .meta({ example: { advance: '25h' } })
export type NewClockChange = z.output<typeof NewClockChange>

export const ClockChange = z.strictObject({
  advancedSeconds: z.int().describe('How far the clock was advanced.'),
  moved: z
    .strictObject({
      sessions: z.int().describe('Payment sessions.'),
      vaults: z.int().describe('Vaults.'),
      vaultTokens: z.int().describe('Vault tokens and tickets.'),
      approvals: z.int().describe('Waiting approvals.'),
      policyUses: z.int().describe('Amounts that count towards the caps of spend policies.'),
      webhookDeliveries: z.int().describe('Deliveries that wait for their next attempt.'),
    })
    .meta({ description: 'How many of each are nearer to their time.' }),
})

named({ NewTestDeposit, TestDeposit, NewTestPayment, NewClockChange, ClockChange })
