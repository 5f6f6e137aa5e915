import { z } from 'zod'

/** Account details per currency, without spaces and hyphens, letters in upper case. */
export const BankDetails = z.discriminatedUnion('currency', [
  z.strictObject({ currency: z.literal('GBP'), sortCode: z.string(), accountNumber: z.string() }),
  z.strictObject({ currency: z.literal('USD'), routingNumber: z.string(), accountNumber: z.string() }),
  z.strictObject({ currency: z.literal('EUR'), iban: z.string(), swiftBic: z.string() }),
])
export type BankDetails = z.output<typeof BankDetails>

export type Currency = BankDetails['currency']
export const currencies = ['EUR', 'GBP', 'USD'] as const satisfies readonly Currency[]

export function isCurrency(text: string): text is Currency {
  return currencies.some((currency) => currency === text)
}

/** The last four characters of the account: enough for its owner to recognize it, too few to use it. */
export function maskOf(details: BankDetails): string {
  return `****${(details.currency === 'EUR' ? details.iban : details.accountNumber).slice(-4)}`
}
