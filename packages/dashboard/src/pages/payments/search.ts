import type { PaymentStatus } from '@purser/sdk'
import { isRange, type RangeSearch } from '../../ui/range.ts'

export const paymentStatuses: readonly PaymentStatus[] = [
  'verified',
  'settling',
  'settled',
  'settlement_failed',
  'voided',
]

/** The filters of the list of payments in the URL. */
export interface PaymentsSearch extends RangeSearch {
  readonly status?: PaymentStatus
  readonly chain?: string
  readonly payer?: string
  readonly apiKeyId?: string
  readonly protocol?: 'x402' | 'mpp'
  readonly route?: string
  readonly walletId?: string
  /** The payments that one transaction settles. */
  readonly batchId?: string
  /** The payment that is open in the sheet. */
  readonly open?: string
}

/** Reads the filters of the list of payments from a URL; unknown parameters are ignored. */
export function readPaymentsSearch(search: Readonly<Record<string, unknown>>): PaymentsSearch {
  const { protocol, route, walletId, batchId, open, range, status, chain, payer, apiKeyId } = search
  const known = paymentStatuses.find((one) => one === status)
  return {
    ...(isRange(range) && { range }),
    ...((protocol === 'x402' || protocol === 'mpp') && { protocol }),
    ...(known !== undefined && { status: known }),
    ...(isText(chain) && { chain }),
    ...(isText(payer) && { payer }),
    ...(isText(apiKeyId) && { apiKeyId }),
    ...(isText(route) && { route }),
    ...(isText(walletId) && { walletId }),
    ...(isText(batchId) && { batchId }),
    ...(isText(open) && { open }),
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 2_048
}
