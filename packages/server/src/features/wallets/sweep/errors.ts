import { defineErrors } from '../../../platform/errors.ts'

export const fail = defineErrors({
  'sweep-not-found': {
    status: 404,
    title: 'Sweep Not Found',
    detail: 'The wallet has no such sweep.',
    causes: ['The wallet in the path has no sweep with this `swp_…`.'],
    fix: 'List the sweeps of the wallet with `GET /wallet-infra/master-wallets/{id}/sweeps` and take the id from there.',
  },
  'sweep-not-supported': {
    status: 422,
    title: 'Sweep Not Supported',
    detail:
      'The token cannot be swept on this chain: it does not support signed authorizations (EIP-3009), and child addresses have no gas. Use a transfer.',
    causes: [
      'A sweep needs a token whose transfers can be signed (EIP-3009, such as USDC), since child addresses hold no coin for gas. This token has none on this chain.',
    ],
    fix: 'Move the balance with `POST /wallet-infra/transfer` from each child address, which is sent its gas by the master. Leave the token out of the automatic sweep (`PATCH /wallet-infra/master-wallets/{id}`).',
  },
})

/** Refusals of values in the body. */
export const failNamed = defineErrors({
  'child-address-not-found': {
    status: 422,
    title: 'Child Address Not Found',
    detail: 'childAddressIds contains an address that the wallet does not have; see errors.',
    causes: [
      '`childAddressIds` contains an id that is not a child of the wallet in the path; `errors` has the position of each.',
    ],
    fix: 'Remove those ids, or leave `childAddressIds` out to sweep every child that has a balance.',
  },
})
