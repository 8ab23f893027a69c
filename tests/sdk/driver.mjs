// Drives the Node SDK by JSON lines, in the words that driver.py explains. The folder of the SDK is the argument.

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { format } from 'node:util'

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

// The SDK logs to the console, and stdout is ours.
for (const level of ['debug', 'log', 'info']) console[level] = (...words) => process.stderr.write(`${format(...words)}\n`)
for (const level of ['warn', 'error']) console[level] = (...words) => say({ event: 'log', text: format(...words) })

const published = (file) => import(pathToFileURL(join(process.argv[2], 'node_modules', 'iii-sdk', 'dist', file)))
const { registerWorker } = await published('index.mjs')
const { createChannel } = await published('helpers.mjs')

// As another user of this machine, once everything is imported that they might not read.
const user = Number(process.env.DRIVER_USER ?? 0)
if (user) {
  process.setgid(user)
  process.setuid(user)
}

async function writeAll(writer, size) {
  const closed = new Promise((resolve) => writer.stream.once('close', resolve))
  writer.sendMessage('a text')
  writer.stream.end(Uint8Array.from({ length: size }, (_, index) => index % 251))
  await closed
}

async function readAll(reader) {
  const texts = []
  reader.onMessage((text) => texts.push(text))
  const content = await reader.readAll()
  return { texts, size: content.length, sha256: createHash('sha256').update(content).digest('hex') }
}

const BEHAVIOURS = {
  echo: (_client, data, metadata) => ({ payload: data, metadata: metadata ?? null }),
  nothing: () => null,
  fail: (_client, data) => { throw new Error(data.message) },
  hold: () => new Promise(() => {}),
  relay: async (client, data) => ({
    relayed: await client.iii.trigger({ function_id: data.to, payload: data.payload }),
  }),
  pad: (_client, data) => ({ pad: 'x'.repeat(data.size) }),
  measure: (_client, data) => ({ size: data.pad.length }),
  read: (_client, data) => readAll(data.reader),
  write: (_client, data) => writeAll(data.writer, data.size),
}
const TELLING = new Set(['echo', 'nothing', 'hold'])

class Client {
  functions = new Map()
  triggers = new Map()
  types = new Map()
  bindings = new Map()

  constructor(handle, { url, name, headers }) {
    this.handle = handle
    this.iii = registerWorker(url, { workerName: name, headers, otel: { enabled: false } })
  }

  // Not in the SDK's types, and the only way to see it.
  state() { return this.iii.connectionState }

  register({ function: id, behaviour, ...options }) {
    const handler = async (data, metadata) => {
      if (TELLING.has(behaviour)) {
        say({ event: 'called', client: this.handle, function: id, payload: data, metadata: metadata ?? null })
      }
      return BEHAVIOURS[behaviour](this, data, metadata)
    }
    this.functions.set(id, this.iii.registerFunction(id, handler, options))
  }

  unregister({ function: id }) {
    this.functions.get(id).unregister()
    this.functions.delete(id)
  }

  bind({ trigger, ...fields }) { this.triggers.set(trigger, this.iii.registerTrigger(fields)) }

  unbind({ trigger }) {
    this.triggers.get(trigger).unregister()
    this.triggers.delete(trigger)
  }

  own({ type, description, refuses }) {
    const live = new Map()
    const tell = (event, fields) => say({ event, client: this.handle, type, ...fields })
    this.bindings.set(type, live)
    this.types.set(type, this.iii.registerTriggerType({ id: type, description }, {
      registerTrigger: async (binding) => {
        if (refuses) throw new Error(refuses)
        live.set(binding.id, binding)
        tell('bound', binding)
      },
      unregisterTrigger: async ({ id }) => {
        live.delete(id)
        tell('unbound', { id })
      },
    }))
  }

  disown({ type }) {
    this.bindings.delete(type)
    this.types.get(type).unregister()
  }

  async fire({ type, payload }) {
    const bound = [...this.bindings.get(type).values()]
    for (const { function_id, metadata } of bound) {
      await this.call({ function: function_id, payload, metadata, action: { type: 'void' } })
    }
    return bound.length
  }

  call({ function: function_id, pad, timeout_ms: timeoutMs, ...request }) {
    const payload = pad ? { pad: 'x'.repeat(pad) } : request.payload
    return this.iii.trigger({ ...request, function_id, payload, timeoutMs })
  }

  async stream_to({ function: id, size }) {
    const { writer, readerRef } = await createChannel(this.iii)
    const answer = this.call({ function: id, payload: { reader: readerRef } })
    await writeAll(writer, size)
    return answer
  }

  async stream_from({ function: id, size }) {
    const { reader, writerRef } = await createChannel(this.iii)
    const answer = this.call({ function: id, payload: { writer: writerRef, size } })
    const received = await readAll(reader)
    await answer
    return received
  }

  close() { return this.iii.shutdown() }
}

const clients = new Map()

async function perform(action, handle, options) {
  if (action === 'connect') return void clients.set(handle, new Client(handle, options))
  const client = clients.get(handle)
  if (action === 'close') clients.delete(handle)
  return client[action](options)
}

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, do: action, client, ...options } = JSON.parse(line)
  try {
    say({ id, value: (await perform(action, client, options)) ?? null })
  } catch (error) {
    say({ id, error: { code: error.code ?? error.name, message: error.message } })
  }
}).on('close', () => process.exit(0))
