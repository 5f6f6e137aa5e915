import { z } from 'zod'
import { assignPayoutCustomer } from '../features/withdrawals/index.ts'
import { id } from '../platform/ids.ts'
import { command } from './command.ts'

export const setPayoutCustomer = command({
  name: 'set-payout-customer',
  summary: 'Set the organisation’s customer id at Bridge; without one it cannot withdraw to a bank.',
  options: { organisation: 'id of the organisation (org_…)', customer: 'id of its own customer at Bridge' },
  schema: z.strictObject({
    organisation: id('org'),
    customer: z.string().regex(/^[\w-]{1,128}$/, 'must be the id of a customer'),
  }),
  async run(operator, { organisation, customer }) {
    if (await assignPayoutCustomer(operator, organisation, customer))
      return { text: `${organisation}  is ${customer} at Bridge`, json: { organisation, customer }, exitCode: 0 }
    const reason = `there is no ${organisation}, or ${customer} is the customer of another organisation`
    return { text: reason, json: { error: reason }, exitCode: 1 }
  },
})
