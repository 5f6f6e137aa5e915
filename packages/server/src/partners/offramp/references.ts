import type { NewPayout } from './port.ts'

type Currency = NewPayout['currency']

/**
 * Payment references by currency: ACH, SEPA and Faster Payments take no other characters and no other lengths.
 * Source: Bridge, `POST /transfers`: `ach_reference`, `sepa_reference` and `reference` of the destination.
 */
const forms: Readonly<Record<Currency, { readonly form: RegExp; readonly wording: string }>> = {
  USD: { form: /^[A-Za-z0-9 ]{1,10}$/, wording: '1 to 10 letters (A to Z), digits and spaces' },
  EUR: {
    form: /^[A-Za-z0-9 &\-/]{6,140}$/,
    wording: '6 to 140 letters (A to Z), digits, spaces and the characters & - /',
  },
  GBP: {
    form: /^[A-Za-z0-9 &\-./]{1,18}$/,
    wording: '1 to 18 letters (A to Z), digits, spaces and the characters & - . /',
  },
}

/** The rule that this reference breaks for a bank payment in the currency; undefined if it fits. */
export function whyNotReference(currency: Currency, reference: string): string | undefined {
  const { form, wording } = forms[currency]
  return form.test(reference) ? undefined : `must be ${wording} for a payment in ${currency}`
}
