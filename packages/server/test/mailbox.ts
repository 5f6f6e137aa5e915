import { createServer } from 'node:net'
import { vi } from 'vitest'

/** An SMTP server that stores received mails. */
export interface Mailbox {
  readonly url: string
  /** The text of the newest mail to an address; waits until there is one that was not read. */
  newest(address: string): Promise<string>
  stop(): Promise<void>
}

interface Mail {
  readonly to: string
  readonly text: string
}

/** Starts a mailbox on a free port of this machine. It speaks as much of SMTP (RFC 5321) as a sender without extensions needs. */
export async function aMailbox(): Promise<Mailbox> {
  const mails: Mail[] = []
  const server = createServer((socket) => {
    let [buffer, to, isData] = ['', '', false]
    const reply = (line: string): void => void socket.write(`${line}\r\n`)
    reply('220 mailbox.test')
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      buffer += chunk.toString('utf8')
      for (;;) {
        const end = buffer.indexOf(isData ? '\r\n.\r\n' : '\r\n')
        if (end < 0) return
        const part = buffer.slice(0, end)
        buffer = buffer.slice(end + (isData ? 5 : 2))
        if (isData) {
          mails.push({ to: to.toLowerCase(), text: decoded(part) })
          isData = false
          reply('250 kept')
        } else if (/^RCPT TO:/i.test(part)) {
          to = /<([^>]*)>/.exec(part)?.[1] ?? ''
          reply('250 yes')
        } else if (/^DATA/i.test(part)) {
          isData = true
          reply('354 go on')
        } else if (/^QUIT/i.test(part)) {
          reply('221 bye')
          socket.end()
        } else reply('250 yes')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the mailbox has no port')
  return {
    url: `smtp://127.0.0.1:${address.port}`,
    newest: (to) =>
      vi.waitFor(
        () => {
          const at = mails.findLastIndex((mail) => mail.to === to.toLowerCase())
          const [mail] = at < 0 ? [] : mails.splice(at, 1)
          if (mail === undefined) throw new Error(`no mail to ${to}`)
          return mail.text
        },
        { timeout: 10_000, interval: 20 },
      ),
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  }
}

/** The text of a mail, as nodemailer encodes it: quoted-printable where lines are long. */
function decoded(mail: string): string {
  return mail
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
