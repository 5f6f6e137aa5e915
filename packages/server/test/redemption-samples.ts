import { sql } from '../src/platform/db/db.ts'
import type { World } from './world.ts'

let serial = 0

/** A payment that can be redeemed now, by its credential, two with open redemptions, one that can be refunded, and one that is void, with its token. */
export async function makeRedemptions({ call, database }: World, key: string, payment: object) {
  const made = [0, 1, 2, 3, 4].map(() => ({
    ...payment,
    method: 'GET',
    reportsDelivery: true,
    credential: stubNumber(++serial),
  }))
  const ids: string[] = []
  let voidedToken = ''
  for (const body of made) {
    const verified = await call(key, 'POST', '/payments/verify', body)
    ids.push(String(verified.body.paymentId))
    voidedToken = String(verified.body.settlementToken)
  }
  const [redeemable = '', redeeming = '', unserved = '', refundable = '', voided = ''] = ids
  // Their grace periods are over.
  await database.db.run(
    sql`update payments set redemption_until = now() - interval '1 second' where id = any(${ids}::text[])`,
  )
  await database.db.run(sql`update payments set redemption_token = 'redeeming' where id in (${redeeming}, ${unserved})`)
  const payer = '0x1111111111111111111111111111111111111111'
  await database.db.run(sql`update payments set payer = ${payer}, delivery = null where id = ${refundable}`)
  await database.db.run(sql`update payments set status = 'voided', failure_reason = 'released' where id = ${voided}`)
  return {
    redeemable: made[ids.indexOf(redeemable)]?.credential ?? '',
    redeeming,
    unserved,
    refundable,
    voided,
    voidedToken,
  }
}

function stubNumber(serial: number): string {
  return `stub_payment_sample_${serial}`
}
