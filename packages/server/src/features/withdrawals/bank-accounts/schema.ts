import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, text } from '../../../platform/wire.ts'
import { type DetailFault, faultsOfDetails, isCurrency, type WrittenDetails } from './rules.ts'

const detailLengthMax = 64
/** A field of the account as the caller writes it; its currency determines which values are valid. */
const detail = (example: string) => text(detailLengthMax).meta({ example })

const accountNameLengthMax = 140

/** The account's holder and details: the fields of its currency, and no others. */
export const NewBankAccount = z
  .strictObject({
    accountName: text(accountNameLengthMax).trim().min(1).describe('Name of the account holder.'),
    currency: text(16, 1).meta({ description: 'GBP, USD or EUR.', example: 'GBP' }),
    sortCode: detail('20-29-59').optional().describe('GBP: sort code of the bank.'),
    accountNumber: detail('63748472').optional().describe('GBP and USD: account number.'),
    routingNumber: detail('021000021').optional().describe('USD: routing number of the bank (ABA).'),
    iban: detail('GB33 BUKB 2020 1555 5555 55').optional().describe('EUR: IBAN of the account.'),
    swiftBic: detail('BUKBGB22').optional().describe('EUR: BIC of the bank.'),
  })
  .superRefine(
    (written, ctx) => {
      for (const { field, message } of faultsOf(written)) ctx.addIssue({ code: 'custom', path: [field], message })
    },
    // Checked even if another field has a fault, so that a caller gets all faults at once.
    { when: ({ value }) => typeof value === 'object' && value !== null },
  )
  .meta({
    example: { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' },
  })
export type NewBankAccount = z.output<typeof NewBankAccount>

/** A currency without payouts has its own problem code, which the handler throws. */
function faultsOf(written: WrittenDetails & { readonly currency: unknown }): readonly DetailFault[] {
  if (typeof written.currency !== 'string') return []
  const currency = written.currency.trim().toUpperCase()
  return isCurrency(currency) ? faultsOfDetails(currency, written) : []
}

/** A bank account, with the end of its number to recognize it. The details themselves are never returned. */
export const BankAccount = z.strictObject({
  id: id('bac'),
  accountName: z.string().describe('Name of the account holder.'),
  currency: z.string().describe('Currency of the account.'),
  isActive: z.boolean().describe('Whether it can receive withdrawals.'),
  maskedAccount: z.string().meta({ description: 'The last four characters of the account.', example: '****8472' }),
  createdAt: CreatedAt,
})
export type BankAccount = z.input<typeof BankAccount>

export const BankAccountParams = z.strictObject({ id: id('bac') })

named({ NewBankAccount, BankAccount })
