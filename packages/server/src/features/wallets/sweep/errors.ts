import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'sweep-not-found': { status: 404, title: 'Sweep Not Found', detail: 'The wallet has no such sweep.' },
  'sweep-not-supported': {
    status: 422,
    title: 'Sweep Not Supported',
    detail:
      'The token cannot be swept on this chain: it does not support signed authorizations (EIP-3009), and child addresses have no gas. Use a transfer.',
  },
})

/** Refusals of values in the body. */
export const failNamed = defineErrors({
  'child-address-not-found': {
    status: 422,
    title: 'Child Address Not Found',
    detail: 'childAddressIds contains an address that the wallet does not have; see errors.',
  },
})
