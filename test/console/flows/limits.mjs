// Limits with requests through Envoy: what is counted, who is limited, and what a request would meet.
import { assert, eventually, faults, field, flow, made, open, picture, press, see, settled } from './lib.mjs'

const gateway = process.env.GATEWAY
const send = async () => (await fetch(gateway)).status

await flow(async (step) => {
  await made('/upstream', { upstream_name: 'blue', upstream_ip: '127.0.0.1', upstream_port: Number(process.env.BACKEND_PORT) })
  await made('/service', { service_name: 'shop', fqdn: '*' })
  await made('/service/shop/route', { route_name: 'root', route_prefix: '/' })
  await made('/service/shop/route/root/upstream/blue')
  await made('/proxy', { name: 'gw' })
  await made('/proxy/gw/service/shop?wait=applied')
  await eventually(send, 200)
  const page = await open('#/limits')
  await settled(page)

  step('a proxy without limits says so')
  await see(page, 'No limits apply to gw')

  step('hits are counted while the page is open')
  await made('/filter', { filter_name: 'limit', filter_type: 'route_filter_ratelimit', filter_config: { per: 'client', limit: '3/hour' } })
  await made('/service/shop/route/root/filter/limit?wait=applied')
  await eventually(send, 429) // the fourth request of the hour at the latest
  const limits = page.getByRole('table', { name: 'Limits that filters have themselves' })
  await see(limits, '3 each hour')
  await limits.getByRole('link', { name: 'shop/root' }).waitFor()
  const hits = async () => Number(await limits.getByRole('row').nth(1).getByRole('cell').nth(4).innerText())
  await eventually(async () => (await hits()) >= 4, true)
  const before = await hits()
  assert.equal(await send(), 429)
  await eventually(hits, before + 1)

  step('who is limited is named')
  const top = page.getByRole('table', { name: 'Who is limited' })
  await see(top, /127\.0\.0\.1/)

  step('a request is tried, and not counted')
  const counted = await hits()
  await field(page, 'URL, or a curl line').fill('http://shop.example.com/')
  await field(page, 'Address of the client').fill('192.0.2.7')
  await press(page, 'Try')
  await see(page, '1 rate is met')
  await see(page.getByRole('table', { name: 'Descriptors' }), /192\.0\.2\.7/)
  assert.deepEqual(await faults(page, 'limits'), [])
  await picture(page, 'limits')
  assert.equal(await hits(), counted)
  assert.deepEqual(page.complaints, [])
})
