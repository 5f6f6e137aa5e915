import type { SendMail } from './features/people/index.ts'

/** Sends e-mail through an SMTP server; the connection is kept and opened again as needed. */
export async function openMail({
  url,
  from,
}: {
  readonly url: string
  readonly from: string
}): Promise<{ readonly send: SendMail; close(): void }> {
  const { createTransport } = await import('nodemailer')
  const transport = createTransport(url, { from })
  return {
    send: async (mail) => void (await transport.sendMail(mail)),
    close: () => transport.close(),
  }
}
