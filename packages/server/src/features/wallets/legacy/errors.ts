import { defineErrors } from '../../../platform/errors.ts'

export const failLegacy = defineErrors({
  'coin-not-available': {
    status: 422,
    title: 'Coin Not Available',
    detail: 'The coin does not exist in this environment; available lists those that do.',
  },
})
