import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'sweep-not-found': { status: 404, title: 'Sweep Not Found', detail: 'The wallet has no such sweep.' },
  'sweep-not-supported': {
    status: 422,
    title: 'Sweep Not Supported',
    detail:
      'The token cannot be swept on this chain: it takes no signed authorisations (EIP-3009), and child addresses hold no gas. Use a transfer.',
  },
})

/** Refusals of what the body names. */
export const failNamed = defineErrors({
  'child-address-not-found': {
    status: 422,
    title: 'Child Address Not Found',
    detail: 'childAddressIds names an address that the wallet does not have; errors says which.',
  },
})
