import { isRecord } from '../problem.ts'
import { decodeHeader } from './headers.ts'

/** A payment as the caller sent it. Nothing in it is true before Purser has verified it. */
export interface Credential {
  /** The header's raw value. */
  readonly value: string
  /** The header that answers it: version 2 of x402 reads one, version 1 the other. */
  readonly responseHeader: 'PAYMENT-RESPONSE' | 'X-PAYMENT-RESPONSE'
  /** The network as the payer named it, CAIP-2 in version 2, a name in version 1; `stub` for a payment that is none. */
  readonly network: string
}

/** Finds the payment of a request: `none`, `ambiguous` when both headers carry one, or the credential. */
export function findCredential(header: (name: string) => string | undefined): Credential | 'none' | 'ambiguous' {
  const [v2, v1] = [header('payment-signature') ?? '', header('x-payment') ?? '']
  if (v2 !== '' && v1 !== '') return 'ambiguous'
  if (v2 !== '') return { value: v2, responseHeader: 'PAYMENT-RESPONSE', network: networkOf(v2) }
  if (v1 !== '') return { value: v1, responseHeader: 'X-PAYMENT-RESPONSE', network: networkOf(v1) }
  return 'none'
}

function networkOf(value: string): string {
  const payload = decodeHeader(value)
  const named = isRecord(payload?.accepted) ? payload.accepted.network : payload?.network
  return typeof named === 'string' ? named : 'stub'
}
