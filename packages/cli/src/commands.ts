import type { Command } from './command.ts'
import { eventsGet, eventsList, eventsResend } from './commands/events.ts'
import { listen } from './commands/listen.ts'
import { login, logout } from './commands/login.ts'
import { trigger } from './commands/trigger.ts'
import { verify } from './commands/verify.ts'

/** Every command of `purser`, in the order in which help names them. */
export const commands: readonly Command[] = [
  login,
  logout,
  listen,
  trigger,
  eventsList,
  eventsGet,
  eventsResend,
  verify,
]

/** First words that belong to another program, and the sentence that says where. */
export const elsewhere: Readonly<Record<string, string>> = {
  admin:
    'The commands of the operator work on the database and come with the server: purser-admin (package @purser/server).',
  keys: 'The commands on sealed keys work on the database and come with the server: purser-admin (package @purser/server).',
}
