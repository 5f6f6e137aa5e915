import { z } from 'zod'
import { assignPayoutCustomer } from '../features/withdrawals/index.ts'
import { offRampsWithCustomers } from '../partners/index.ts'
import { id } from '../platform/ids.ts'
import { command } from './command.ts'

const [partnerDefault = ''] = offRampsWithCustomers

export const setPayoutCustomer = command({
  name: 'set-payout-customer',
  summary: 'Set the organisation’s customer id at the off-ramp; without one it cannot withdraw to a bank.',
  options: {
    organisation: 'id of the organisation (org_…)',
    customer: 'id of its own customer at the partner',
    partner: `name of the partner; ${partnerDefault} if omitted`,
  },
  schema: z.strictObject({
    organisation: id('org'),
    customer: z.string().regex(/^[\w-]{1,128}$/, 'must be the id of a customer'),
    partner: z.enum(offRampsWithCustomers).default(partnerDefault),
  }),
  async run(operator, { organisation, customer, partner }) {
    if (await assignPayoutCustomer(operator, organisation, { partner, customerId: customer }))
      return {
        lines: [`${organisation}  is ${customer} at ${partner}`],
        json: { organisation, customer, partner },
        exitCode: 0,
      }
    const reason = `there is no ${organisation}, or ${customer} is the customer of another organisation`
    return { lines: [reason], json: { error: reason }, exitCode: 1 }
  },
})
