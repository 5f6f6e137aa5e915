import { defineErrors } from '../../platform/errors.ts'

export const fail = defineErrors({
  'chain-not-found': { status: 404, title: 'Chain Not Found', detail: 'No such chain.' },
  'chain-not-available': {
    status: 422,
    title: 'Chain Not Available',
    detail: 'A live key cannot use a test chain: play money must not pay for real things.',
  },
})
