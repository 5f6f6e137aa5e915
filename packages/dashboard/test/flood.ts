import type { Page } from 'playwright-core'

/** A stream of events that a page reads in place of the service's. */
export interface Flood {
  readonly perSecond: number
  /** Payments that the events are about, one after the other. */
  readonly paymentIds: readonly string[]
  /** Number of events after which no more come; without it they do not end. */
  readonly most?: number
}

/** The id of the payment of an event, by its number. */
export function floodedPaymentId(index: number): string {
  return `pay_${String(index).padStart(26, '0')}`
}

/**
 * Answers each reading of the list of payments with these payments, by their numbers, in the shape of the first payment of the service's response.
 * The readings are counted from 0.
 */
export async function answerPayments(
  page: Page,
  paymentsOf: (reading: number) => readonly number[],
  changed: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  let readings = 0
  await page.route('**/payments/logs?*', async (route) => {
    const numbers = paymentsOf(readings)
    readings += 1
    const response = await route.fetch()
    const [one] = (await response.json()) as readonly Readonly<Record<string, unknown>>[]
    if (one === undefined) throw new Error('the list of payments is empty')
    const json = numbers.map((number) => {
      const paymentId = floodedPaymentId(number)
      return { ...one, ...changed, paymentId, id: paymentId.replace('pay_', 'plog_') }
    })
    await route.fulfill({ response: response, json })
  })
}

/**
 * Replaces, before the page is loaded, its stream of events by one that sends `perSecond` of them: each payment is received, then settled.
 * `flooded` of the page counts them.
 */
export async function flood(page: Page, plan: Flood): Promise<void> {
  await page.addInitScript(({ perSecond, paymentIds, most }: Flood) => {
    const everyMs = 10
    const real = globalThis.fetch
    let sent = 0
    const event = (): string => {
      sent += 1
      Object.assign(globalThis, { flooded: sent })
      const type = sent % 2 === 0 ? 'payment.settled' : 'payment.received'
      const paymentId = paymentIds[Math.floor(sent / 2) % paymentIds.length]
      const body = JSON.stringify({ type, payload: { paymentId, txHash: `0x${'ab'.repeat(32)}` } })
      const headers = { 'webhook-timestamp': String(Math.floor(Date.now() / 1_000)) }
      return `id: ${sent}\ndata: ${JSON.stringify({ eventId: `evt_${sent}`, type, headers, body })}\n\n`
    }
    const stream = () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          const encoder = new TextEncoder()
          const began = performance.now()
          const first = sent
          controller.enqueue(encoder.encode('retry: 1000\nid: 0\n\n'))
          setInterval(() => {
            const due = Math.min(most ?? Infinity, first + (perSecond * (performance.now() - began)) / 1_000)
            let text = ''
            while (sent < due) text += event()
            if (text !== '') controller.enqueue(encoder.encode(text))
          }, everyMs)
        },
      })
    globalThis.fetch = async (input, init) => {
      const { pathname } = new URL(input instanceof Request ? input.url : input, location.href)
      if (pathname !== '/events/stream') return real(input, init)
      return new Response(stream(), {
        headers: { 'content-type': 'text/event-stream', date: new Date().toUTCString() },
      })
    }
  }, plan)
}

/** Waits until so many more events have reached the page. */
export async function afterEvents(page: Page, events: number): Promise<void> {
  const read = () => (globalThis as { flooded?: number }).flooded ?? 0
  const before = await page.evaluate(read)
  await page.waitForFunction((wanted) => ((globalThis as { flooded?: number }).flooded ?? 0) >= wanted, before + events)
}
