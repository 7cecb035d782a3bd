"""Families of tools: the same operations on many kinds of things, and formulas with their quantities.

They are written as text in the notation of the other material (`training/tools.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

# One thing per line: noun; plural; German with article, and plural; Chinese; fields as NAME KIND about.
_THINGS = """
task; tasks; eine Aufgabe; Aufgaben; 任务; title title what to do; due_date date YYYY-MM-DD; priority low|medium|high how urgent
event; events; einen Termin; Termine; 日程; title title what it is; date date YYYY-MM-DD; time time HH:MM
contact; contacts; einen Kontakt; Kontakte; 联系人; name person full name; phone phone number; email email address
customer; customers; einen Kunden; Kunden; 客户; name company name; city city where; discount percent in percent
invoice; invoices; eine Rechnung; Rechnungen; 发票; customer company who pays; amount money how much; due_date date YYYY-MM-DD
product; products; ein Produkt; Produkte; 产品; name product name; price float 1 900 price; stock int 0 500 how many there are
order; orders; eine Bestellung; Bestellungen; 订单; item product what; quantity int 1 60 how many; customer person for whom
ticket; tickets; ein Ticket; Tickets; 工单; subject subject in one line; priority low|medium|high how urgent; owner person who works on it
project; projects; ein Projekt; Projekte; 项目; name title name; deadline date YYYY-MM-DD; budget money budget
employee; employees; einen Mitarbeiter; Mitarbeiter; 员工; name person full name; department department where; salary int 20000 150000 a year
student; students; einen Schüler; Schüler; 学生; name person full name; grade int 1 12 class; age int 6 19 age
course; courses; einen Kurs; Kurse; 课程; title topic what it is about; teacher person who teaches; seats int 5 200 how many
patient; patients; einen Patienten; Patienten; 病人; name person full name; age int 1 99 age; symptom symptom complaint
appointment; appointments; eine Verabredung; Verabredungen; 预约; person person with whom; date date YYYY-MM-DD; time time HH:MM
expense report; expense reports; eine Abrechnung; Abrechnungen; 报销单; amount money how much; category category for what
bookmark; bookmarks; ein Lesezeichen; Lesezeichen; 书签; url url the address; title topic title
playlist; playlists; eine Playlist; Playlists; 歌单; name genre name; public bool whether others see it
vehicle; vehicles; ein Fahrzeug; Fahrzeuge; 车辆; plate id license plate; color color colour; mileage int 0 250000 km driven
shipment; shipments; eine Lieferung; Lieferungen; 货物; destination city where to; weight float 0.1 900 in kg; carrier company who brings it
subscription; subscriptions; ein Abo; Abos; 订阅; plan basic|standard|premium which plan; email email of whom; months int 1 36 how long
poll; polls; eine Umfrage; Umfragen; 投票; question quoted the question; options list dish answers to choose from
server; servers; einen Server; Server; 服务器; name host name; cpus int 1 64 number of cores; region eu|us|asia where
comment; comments; einen Kommentar; Kommentare; 评论; text quoted what it says; author person who wrote it
review; reviews; eine Bewertung; Bewertungen; 评价; product product what; rating int 1 5 stars; text quoted the review
recipe card; recipe cards; ein Rezept; Rezepte; 食谱卡; name dish name; servings int 1 12 for how many; minutes int 5 180 how long it takes
reminder; reminders; eine Erinnerung; Erinnerungen; 提醒; text chore of what; time time HH:MM; date date YYYY-MM-DD
booking; bookings; eine Buchung; Buchungen; 预订; guest person who; nights int 1 21 how many; room_number int 1 400 which room
donation; donations; eine Spende; Spenden; 捐款; donor person who gives; amount money how much
sensor; sensors; einen Sensor; Sensoren; 传感器; name id name; threshold float 0.01 500 limit; room room where
policy; policies; eine Police; Policen; 保单; holder person whom it covers; premium money yearly; type health|car|home|travel what it covers
coupon; coupons; einen Gutschein; Gutscheine; 优惠券; code id what is typed in; percent percent discount
pet; pets; ein Haustier; Haustiere; 宠物; name person its name; species animal kind of animal; weight float 0.2 60 in kg
book loan; book loans; eine Ausleihe; Ausleihen; 借书记录; book book title; reader person who; days int 7 60 how long
meeting room; meeting rooms; einen Besprechungsraum; Besprechungsräume; 会议室; name color name; seats int 2 60 how many
lead; leads; einen Interessenten; Interessenten; 潜在客户; company company which; value money expected; stage new|contacted|won|lost how far it is
campaign; campaigns; eine Kampagne; Kampagnen; 广告活动; name topic name; budget money what it may cost; start_date date YYYY-MM-DD
webhook; webhooks; einen Webhook; Webhooks; 网络钩子; url url where to; event created|updated|deleted when
api key; api keys; einen API-Schlüssel; API-Schlüssel; 接口密钥; label label name; days int 1 365 valid for
device; devices; ein Gerät; Geräte; 设备; serial key serial number; room room where
workout plan; workout plans; einen Trainingsplan; Trainingspläne; 训练计划; sport sport which; weeks int 1 20 how long; per_week int 1 7 how often
meal; meals; eine Mahlzeit; Mahlzeiten; 餐食; dish dish what; calories int 100 1500 kcal
medication; medications; ein Medikament; Medikamente; 药物; name element name; dose_mg float 0.5 800 in mg; times_per_day int 1 6 how often
parcel locker; parcel lockers; ein Paketfach; Paketfächer; 快递柜; code id code; city city where
job posting; job postings; eine Stelle; Stellen; 职位; title department what; salary int 20000 180000 a year; city city where
candidate; candidates; einen Bewerber; Bewerber; 候选人; name person full name; years int 0 40 of experience
contract; contracts; einen Vertrag; Verträge; 合同; partner company with whom; amount money worth; end_date date YYYY-MM-DD
house; houses; ein Haus; Häuser; 房子; city city where; price int 50000 3000000 price; rooms int 1 14 how many
flight alert; flight alerts; einen Flugalarm; Flugalarme; 航班提醒; origin airport from; destination airport to; max_price money at most
photo album; photo albums; ein Fotoalbum; Fotoalben; 相册; title city name; year int 1990 2026 of which year
habit; habits; eine Gewohnheit; Gewohnheiten; 习惯; name chore what; frequency daily|weekly|monthly how often
garden bed; garden beds; ein Beet; Beete; 花圃; plant plant what grows there; square_meters float 0.5 60 size
library card; library cards; einen Bibliotheksausweis; Bibliotheksausweise; 借书证; holder person whose; years int 1 5 valid for
tournament; tournaments; ein Turnier; Turniere; 比赛; sport sport which; teams int 4 64 how many; date date YYYY-MM-DD
budget line; budget lines; einen Budgetposten; Budgetposten; 预算项; category category for what; amount money how much
tenant; tenants; einen Mieter; Mieter; 租户; name person full name; rent money a month; flat_number int 1 200 which flat
insurance claim; insurance claims; einen Schadensfall; Schadensfälle; 理赔; policy_number id which policy; amount money how much; description quoted what happened
sprint; sprints; einen Sprint; Sprints; 冲刺; name title name; days int 5 30 how long
wiki page; wiki pages; eine Wikiseite; Wikiseiten; 维基页面; title topic title; body quoted text
domain record; domain records; einen DNS-Eintrag; DNS-Einträge; 域名记录; host domain which; type A|AAAA|MX|TXT kind; ttl int 60 86400 in seconds
container; containers; einen Container; Container; 容器; image service which image; memory_mb int 64 32000 memory; restart bool start again by itself
volunteer; volunteers; einen Freiwilligen; Freiwillige; 志愿者; name person full name; city city where; hours int 1 40 a week
gift card; gift cards; eine Geschenkkarte; Geschenkkarten; 礼品卡; amount money worth; recipient email for whom
team; teams; ein Team; Teams; 团队; name team name; members list person who is in it
"""

_CREATE_EN = (
    "Create a new {noun} with {given}",
    "Add {a_noun}: {given}",
    "Please make {a_noun} with {given}",
    "New {noun}, {given}",
    "Register {a_noun} with {given}",
)
_COMPOSED_EN = (
    *("Create {a_noun} {parts}", "Add {a_noun} {parts}", "new {noun} {parts}", "I need a new {noun} {parts}", "Set up {a_noun} {parts}"),
    *("Make {a_noun} {parts}", "Put in {a_noun} {parts}", "There's a new {noun} {parts}, please enter it", "We need {a_noun} {parts}"),
    *("{noun} {parts}, please create it", "record {a_noun} {parts}", "Enter {a_noun} {parts}", "we have a new {noun} {parts}"),
)  # fmt: skip
# The phrase for a field, by its name. For all other fields, the phrase contains the name.
_SAID = {
    "title": ("called {}", "titled {}", "named {}", "with the title {}"), "name": ("called {}", "named {}", "with the name {}", "{}"),
    "due_date": ("due {}", "due on {}", "by {}", "with a deadline of {}"), "deadline": ("due {}", "until {}", "to be finished by {}"),
    "date": ("on {}", "for {}", "dated {}"), "time": ("at {}", "starting at {}"), "priority": ("with {} priority", "{} priority", "priority {}"),
    "phone": ("phone {}", "with the number {}", "tel. {}"), "email": ("email {}", "{}", "with the address {}"), "city": ("in {}", "from {}", "located in {}"),
    "discount": ("with {} discount", "with {} off"), "customer": ("for {}", "for the customer {}", "ordered by {}"), "amount": ("over {}", "of {}", "for {}", "amounting to {}"),
    "price": ("at {}", "costing {}", "for {}"), "stock": ("with {} in stock", "we have {} of them"), "item": ("for {}", "of {}"), "quantity": ("{} pieces", "quantity {}", "{} of them"),
    "subject": ("about {}", "with the subject {}", "regarding {}"), "owner": ("for {}", "assigned to {}", "owned by {}"), "budget": ("with a budget of {}", "budget {}", "that may cost {}"),
    "department": ("in {}", "who works in {}", "for the {} department"), "salary": ("earning {}", "with a salary of {}", "for {} a year"), "grade": ("in grade {}", "grade {}"),
    "age": ("aged {}", "who is {} years old", "age {}"), "teacher": ("taught by {}", "with {} as teacher"), "seats": ("with {} seats", "for {} people", "that seats {}"),
    "symptom": ("who has {}", "complaining of {}", "with {}"), "person": ("with {}",), "category": ("for {}", "in the category {}"), "url": ("at {}", "for {}", "pointing to {}"),
    "plate": ("with the plate {}", "{}"), "color": ("in {}", "colour {}"), "mileage": ("with {} km on it", "mileage {}"), "destination": ("to {}", "going to {}"),
    "weight": ("weighing {} kg", "of {} kg"), "carrier": ("with {}", "carried by {}"), "plan": ("on the {} plan", "{}"), "months": ("for {} months", "running {} months"),
    "question": ("asking {}", "with the question {}"), "options": ("with the options {}", "between {}"), "cpus": ("with {} cores", "with {} CPUs"), "region": ("in {}", "in the {} region"),
    "author": ("by {}", "from {}"), "product": ("of {}", "for {}"), "rating": ("with {} stars", "rated {}"), "servings": ("for {} people", "serving {}"), "minutes": ("taking {} minutes",),
    "guest": ("for {}",), "nights": ("for {} nights", "{} nights"), "room_number": ("in room {}", "room {}"), "donor": ("from {}", "by {}"), "threshold": ("with a limit of {}", "threshold {}"),
    "room": ("in the {}",), "holder": ("for {}", "in the name of {}"), "premium": ("at {} a year", "premium {}"), "code": ("with the code {}", "{}"), "percent": ("for {} off", "giving {}"),
    "species": ("a {}", "that is a {}"), "book": ("for the book {}", "of {}"), "reader": ("to {}", "by {}"), "days": ("for {} days", "lasting {} days"), "company": ("at {}", "from {}"),
    "value": ("worth {}",), "stage": ("in stage {}",), "start_date": ("starting {}", "from {} on"), "event": ("when something is {}",), "weeks": ("for {} weeks",), "calories": ("with {} kcal",),
    "years": ("with {} years of experience", "for {} years"), "partner": ("with {}",), "end_date": ("ending {}", "that runs until {}"), "rooms": ("with {} rooms",), "origin": ("from {}",),
    "max_price": ("below {}", "for at most {}"), "year": ("from {}",), "frequency": ("{}",), "teams": ("with {} teams",), "rent": ("paying {} a month", "at {} rent"), "flat_number": ("in flat {}",),
    "members": ("with {}", "consisting of {}"), "recipient": ("for {}", "to be sent to {}"), "hours": ("for {} hours a week",), "sport": ("for {}",), "dish": ("{}",),
}  # fmt: skip


def family_lines() -> Iterator[str]:
    """The text of all families."""
    for line in _THINGS.strip().split("\n"):
        yield from _records(line)
    yield from _formulas()


def _records(line: str) -> Iterator[str]:
    noun, plural, german, germans, chinese, *fields = [part.strip() for part in line.split(";")]
    key, keys = noun.replace(" ", "_"), plural.replace(" ", "_")
    parsed = [_field(field) for field in fields]
    first, *others = parsed
    yield f"# {key}"
    yield from _create(noun, key, german, chinese, parsed)
    yield f"@ get_{key}, show_{key}, fetch_{key}, {key}_details :: Show one {noun} by its id. / Details of a {noun}."
    yield f". {key}_id, id: id = id of the {noun}"
    yield f"e Show me {noun} {{{key}_id}}"
    yield f"e What are the details of {noun} {{{key}_id}}?"
    yield f"e pull up {noun} {{{key}_id}}"
    yield f"e what do we know about {noun} {{{key}_id}}?"
    yield f"e Look up {{{key}_id}} for me, it's {'an' if noun[0] in 'aeio' else 'a'} {noun}"
    yield f"e info on {noun} {{{key}_id}}"
    yield f"d Zeig mir {germans} Nummer {{{key}_id}}"
    yield f"z 显示{chinese}{{{key}_id}}"
    yield f"f And {{{key}_id}}?"
    yield f"? {key}_id ; Show me the {noun} ; Which {noun}? Please give me its id."
    yield f'= {{"id": "{{{key}_id}}", "state": "{{a:state}}"}} => The {noun} {{{key}_id}} is {{a}}.'
    yield f"@ list_{keys}, all_{keys}, get_{keys} :: List the {plural}."
    yield f". limit?, max_results?, count?: int 2 50 = at most so many {plural}"
    yield ". sort_by?, order?: newest|oldest|name = order of the list"
    yield f"e List all {plural}"
    yield f"e Which {plural} are there?"
    yield f"e give me an overview of the {plural}"
    yield f"e what {plural} do I have"
    yield f"e I'd like to see every {noun}"
    yield f"e show me {{limit}} {plural}, {{sort_by}} first"
    yield f"e Show me the first {{limit}} {plural}"
    yield f"e List the {plural}, sorted by {{sort_by}}"
    yield f"d Welche {germans} gibt es?"
    yield f"d Zeig mir alle {germans}"
    yield f"z 列出所有{chinese}"
    yield f"z 有哪些{chinese}？"
    yield f"= {{a:int 2 40}} {plural}\\n{{b:id}}\\n{{c:id}} => SHOW"
    yield from _delete(noun, key, germans, chinese)
    yield from _change(noun, key, chinese, others or [first])
    yield from _count_and_search(noun, plural, germans, chinese, first)


def _delete(noun: str, key: str, germans: str, chinese: str) -> Iterator[str]:
    yield f"@ delete_{key}, remove_{key}, cancel_{key} :: Delete a {noun}. / Remove one {noun} for good."
    yield f". {key}_id, id, number: id = which {noun}"
    yield f"e Delete {noun} {{{key}_id}}"
    yield f"e Please remove the {noun} {{{key}_id}}"
    yield f"e Get rid of {noun} {{{key}_id}}"
    yield f"e we don't need {noun} {{{key}_id}} any more"
    yield f"e {noun} {{{key}_id}} can go"
    yield f"e {{{key}_id}} was a mistake, throw that {noun} away"
    yield f"e cancel {noun} {{{key}_id}}"
    yield f"d Lösche {germans} Nummer {{{key}_id}}"
    yield f"z 删除{chinese}{{{key}_id}}"
    yield f"? {key}_id ; Delete the {noun} ; Which {noun} should I delete?"
    yield f"?z {key}_id ; 删除{chinese} ; 要删除哪个{chinese}？"
    yield f"= deleted => The {noun} {{{key}_id}} is deleted."


def _count_and_search(
    noun: str, plural: str, germans: str, chinese: str, first: tuple[str, str, str]
) -> Iterator[str]:
    key, keys = noun.replace(" ", "_"), plural.replace(" ", "_")
    yield f"@ count_{keys}, number_of_{keys}, {key}_count :: Count the {plural}."
    yield f"e How many {plural} are there?"
    yield f"e Count the {plural}"
    yield f"e How many {plural} do we have?"
    yield f"d Wie viele {germans} gibt es?"
    yield f"z 一共有多少{chinese}？"
    yield f"= {{a:int 0 900}} => There are {{a}} {plural}."
    name, kind, about = first
    yield f"@ search_{keys}, find_{keys}, {key}_search :: Find {plural} by {name}."
    yield f". {name}, query: {kind} = {about}"
    yield ". limit?: int 1 30 = at most"
    yield f"e Find {plural} with the {name.replace('_', ' ')} {{{name}}}"
    yield f"e Search the {plural} for {{{name}}}"
    yield f"e is there {'an' if noun[0] in 'aeio' else 'a'} {noun} with the {name.replace('_', ' ')} {{{name}}}?"
    yield f"e look for {{{name}}} among the {plural}"
    yield f"e do we have {'an' if noun[0] in 'aeio' else 'a'} {noun} {{{name}}}? show {{limit}} at most"
    yield f"e Search for {{{name}}} in the {plural}, {{limit}} results at most"
    yield f"d Suche in den {germans} nach {{{name}}}"
    yield f"z 在{chinese}中搜索{{{name}}}"
    yield f"= {{a:int 0 9}} found => {{a}} {plural} were found."


def _create(
    noun: str, key: str, german: str, chinese: str, fields: list[tuple[str, str, str]]
) -> Iterator[str]:
    yield f"@ create_{key}, add_{key}, new_{key} :: Create a {noun}. / Add a new {noun}."
    for at, (name, kind, about) in enumerate(fields):
        yield f". {name}{'' if at < 2 else '?'}: {kind} = {about}"
    must = [name for name, _, _ in fields[:2]]
    every = [name for name, _, _ in fields]
    article = f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
    for at, pattern in enumerate(_CREATE_EN):
        chosen = every if at % 2 else must
        given = ", ".join(f"{name.replace('_', ' ')} {{{name}}}" for name in chosen)
        yield "e " + pattern.replace("{noun}", noun).replace("{a_noun}", article).replace("{given}", given)
    for phrase in _composed(noun, must, every):
        yield "e " + phrase.replace("{noun}", noun).replace("{a_noun}", article)
    given = ", ".join(f"{name} {{{name}}}" for name in must)
    yield f"d Lege {german} an: {given}"
    yield f"z 新建一个{chinese}：" + "，".join(f"{name}为{{{name}}}" for name in must)
    lacking = must[-1]
    if len(must) > 1:
        label = lacking.replace("_", " ")
        yield f"? {lacking} ; Create {article} with {must[0].replace('_', ' ')} {{{must[0]}}} ; What is the {label}?"
    yield f'= {{"id": "{{a:id}}"}} => The {noun} was created; its id is {{a}}.'
    yield f"= created {{a:id}} => The {noun} {{a}} is created."


def _composed(noun: str, must: list[str], every: list[str]) -> Iterator[str]:
    """Return requests that combine the phrases of fields."""
    chance = random.Random(noun)
    for pattern in chance.sample(_COMPOSED_EN, 10):
        names = [name for name in every if name in must or chance.random() < 0.6]
        said = [
            chance.choice(_SAID.get(name, (f"with {name.replace('_', ' ')} {{}}",))).replace(
                "{}", f"{{{name}}}"
            )
            for name in names
        ]
        if not said[0].startswith(("{", "called", "named", "titled")) and chance.random() < 0.3:
            chance.shuffle(said)
        yield pattern.replace("{parts}", chance.choice([" ", " ", ", "]).join(said))


def _change(noun: str, key: str, chinese: str, fields: list[tuple[str, str, str]]) -> Iterator[str]:
    yield f"@ update_{key}, change_{key}, edit_{key} :: Change a {noun}. / Update fields of a {noun}."
    yield f". {key}_id, id: id = which {noun}"
    for name, kind, about in fields:
        yield f". {name}?: {kind} = {about}"
    for name, _, _ in fields:
        label = name.replace("_", " ")
        yield f"e Set the {label} of {noun} {{{key}_id}} to {{{name}}}"
        yield f"e Change {noun} {{{key}_id}}: {label} {{{name}}}"
        yield f"e the {label} of {noun} {{{key}_id}} is now {{{name}}}"
        yield f"e {noun} {{{key}_id}} should have the {label} {{{name}}} instead"
        yield f"e update {{{key}_id}}, {label} {{{name}}}"
        yield f"e {{{key}_id}} needs a new {label}: {{{name}}}"
        yield f"z 把{chinese}{{{key}_id}}的{name}改为{{{name}}}"
    name = fields[0][0]
    yield f"? {key}_id ; Change the {name.replace('_', ' ')} of the {noun} to {{{name}}} ; Of which {noun}?"
    yield f"= updated => The {noun} {{{key}_id}} is changed."


def _field(text: str) -> tuple[str, str, str]:
    """NAME KIND about, where a kind may have two numbers or another kind after it."""
    name, kind, *rest = text.split(" ")
    if kind == "list":
        kind, rest = f"{kind} {rest[0]}", rest[1:]
    elif kind in ("int", "float"):
        kind, rest = f"{kind} {rest[0]} {rest[1]}", rest[2:]
    return name, kind, " ".join(rest)


# One formula per line: names; about; the requested quantity; parameters as NAME,OTHER KIND phrase.
_FORMULAS = """
triangle_area, area_of_triangle; Area of a triangle.; area of a triangle; base,b int 1 90 a base of; height,h int 1 90 a height of
rectangle_area, compute_area; Area of a rectangle.; area of a rectangle; length,width float 0.5 90 a length of; breadth,height float 0.5 90 a breadth of
circle_area, area_of_circle; Area of a circle.; area of a circle; radius,r float 0.1 90 a radius of
circle_circumference, circumference; Circumference of a circle.; circumference of a circle; radius,r float 0.1 90 a radius of
cylinder_volume, volume_of_cylinder; Volume of a cylinder.; volume of a cylinder; radius,r float 0.1 40 a radius of; height,h float 0.1 90 a height of
sphere_volume, volume_sphere; Volume of a sphere.; volume of a sphere; radius,r float 0.1 40 a radius of
hypotenuse, pythagoras; Longest side of a right triangle.; hypotenuse of a right triangle; a,side_a int 1 60 one side of; b,side_b int 1 60 another side of
bmi, body_mass_index; Body mass index.; body mass index of a person; weight_kg,weight float 40 130 a weight of; height_m,height float 1.4 2.1 a height of
compound_interest, investment_value; Value of an investment with compound interest.; value of an investment; principal,amount money a principal of; rate,annual_rate percent a rate of; years,time int 1 40 a term in years of
simple_interest, interest; Simple interest on a sum.; simple interest; principal,amount int 100 900000 a principal of; rate percent a rate of; years int 1 30 a time in years of
loan_payment, monthly_payment; Monthly payment of a loan.; monthly payment of a loan; amount,loan int 1000 2500000 an amount of; interest_rate,rate percent a rate of; months,term int 6 360 a term in months of
speed, average_speed; Average speed.; average speed; distance_km,distance float 0.1 900 a distance of; hours,time float 0.1 24 a time in hours of
density, compute_density; Density of a body.; density of a body; mass,m float 0.001 900 a mass of; volume,v float 0.001 90 a volume of
kinetic_energy, energy_of_motion; Kinetic energy of a body.; kinetic energy of a body; mass,m float 0.001 2000 a mass of; velocity,v float 0.1 300 a velocity of
potential_energy, energy_of_position; Potential energy of a body.; potential energy of a body; mass float 0.1 900 a mass of; height float 0.5 300 a height of; gravity?,g? float 1 25 a gravity of
force, newton_force; Force by mass and acceleration.; force; mass,m float 0.001 2000 a mass of; acceleration,a float 0.1 90 an acceleration of
ohms_law, voltage; Voltage by current and resistance.; voltage; current,i float 0.001 40 a current of; resistance,r float 0.1 9000 a resistance of
momentum, compute_momentum; Momentum of a body.; momentum of a body; mass float 0.01 900 a mass of; velocity float 0.1 300 a velocity of
discount_price, apply_discount; Price after a discount.; price after a discount; price,original_price money a price of; discount,percent percent a discount of
sales_tax, add_tax; Price with tax.; price with tax; price,amount money a price of; tax_rate,rate percent a tax of
tip_amount, compute_tip; Tip on a bill.; tip; bill,total money a bill of; percent,tip_percent percent a tip of
profit_margin, margin; Profit margin in percent.; profit margin; revenue,sales int 1000 9000000 revenue of; cost,costs int 500 8000000 costs of
return_on_investment, roi; Return on investment.; return on investment; gain,profit int 100 900000 a gain of; cost,investment int 100 900000 a cost of
fuel_cost, trip_cost; Cost of the fuel for a trip.; fuel cost of a trip; distance,km int 5 2500 a distance of; consumption,litres_per_100km float 3 15 a consumption of; price,price_per_litre float 0.9 2.5 a fuel price of
paint_needed, litres_of_paint; Paint for a wall.; paint needed for a wall; width float 1 30 a width of; height float 1 9 a height of; coats? int 1 4 a number of coats of
half_life, radioactive_decay; What is left of a substance after a time.; remaining amount of a substance; initial,amount float 0.1 900 an amount of; half_life_years,half_life float 0.5 9000 a half-life in years of; years,elapsed int 1 9000 a time in years of
greatest_common_divisor, gcd; Greatest common divisor.; greatest common divisor of two numbers; a,first int 2 900 a first number of; b,second int 2 900 a second number of
least_common_multiple, lcm; Least common multiple.; least common multiple of two numbers; a,first int 2 90 a first number of; b,second int 2 90 a second number of
permutations, arrangements; Number of ways to arrange k of n things.; number of permutations; n,total int 4 30 a total of; k,chosen int 1 4 a choice of
combinations, choose; Number of ways to choose k of n things.; number of combinations; n,total int 4 60 a total of; k,chosen int 1 4 a choice of
point_distance, euclidean_distance; Distance of two points in the plane.; distance of two points; x1 int -20 20 an x1 of; y1 int -20 20 a y1 of; x2 int -20 20 an x2 of; y2 int -20 20 a y2 of
linear_regression, fit_line; Fit a line through points.; line through points; x,xs list int 1 40 x values of; y,ys list int 1 90 y values of
standard_deviation, spread; Standard deviation of numbers.; standard deviation; values,data list float 1 90 the values
weighted_mean, weighted_average; Mean with weights.; weighted mean; values list int 1 90 the values; weights list int 1 9 the weights
age_at, years_between; Age of a person on a day.; age of a person; birth_date,born date YYYY-MM-DD a birth date of; on?,at? date YYYY-MM-DD a reference day of
heart_rate_zone, training_zone; Heart rates to train at.; training heart rate; age int 14 90 an age of; resting? int 40 90 a resting pulse of
calories_burned, energy_used; Calories used by a sport.; calories burned; weight_kg,weight float 40 130 a body weight of; minutes int 5 240 a duration in minutes of
dilution, molarity; Concentration of a solution.; molarity; moles,n float 0.001 20 an amount in moles of; litres,volume float 0.01 30 a volume in litres of
pressure, compute_pressure; Pressure by force and area.; pressure; force,f float 0.5 9000 a force of; area,a float 0.001 90 an area of
wavelength, wave_length; Wavelength by speed and frequency.; wavelength; speed,v float 1 300000 a speed of; frequency,f float 0.01 90000 a frequency of
mortgage_limit, affordable_price; Price of a home that an income can carry.; affordable price of a home; income,yearly_income int 20000 400000 an income of; savings,down_payment? int 1000 900000 savings of
growth_rate, percent_change; Change in percent between two values.; percentage change; old,before,start float 1 9000 an old value of; new,after,end float 1 9000 a new value of
"""


def _formulas() -> Iterator[str]:
    for line in _FORMULAS.strip().split("\n"):
        names, about, wanted, *given = [part.strip() for part in line.split(";")]
        yield f"# formula {names.split(',')[0]}"
        yield f"@ {names} :: {about} / Calculate the {wanted}."
        parameters = [_quantity(one) for one in given]
        for spelled, kind, phrase in parameters:
            hint = "YYYY-MM-DD" if kind == "date" else _shorter(phrase)
            yield f". {spelled}: {kind} = {hint}"
        known = [(spelled.split(",")[0].rstrip("?"), phrase) for spelled, _, phrase in parameters]
        must = [(name, phrase) for name, phrase in known if not _optional(parameters, name)]
        every, needed = _with(known), _with(must)
        yield f"e What is the {wanted} with {needed}?"
        yield f"e Calculate the {wanted} with {every}"
        yield f"e I need the {wanted}, given {needed}"
        yield f"e Find the {wanted} for {every}"
        yield (
            "d Berechne "
            + names.split(",")[0]
            + " mit "
            + ", ".join(f"{name} {{{name}}}" for name, _ in must)
        )
        yield "z 计算" + names.split(",")[0] + "：" + "，".join(f"{name}为{{{name}}}" for name, _ in must)
        if len(must) > 1:
            name, phrase = must[-1]
            yield f"? {name} ; What is the {wanted} with {_with(must[:-1])}? ; I also need {phrase.removesuffix(' of')}."
        yield f"= {{r:float 0.1 9000}} => The {wanted} is {{r}}."


def _quantity(text: str) -> tuple[str, str, str]:
    spelled, kind, *rest = text.split(" ")
    if kind == "list":
        kind, rest = " ".join([kind, *rest[:3]]), rest[3:]
    elif kind in ("int", "float"):
        kind, rest = f"{kind} {rest[0]} {rest[1]}", rest[2:]
    elif kind == "date":
        rest = rest[1:]
    return spelled, kind, " ".join(rest)


def _optional(parameters: list[tuple[str, str, str]], name: str) -> bool:
    return any(spelled.split(",")[0] == f"{name}?" for spelled, _, _ in parameters)


def _with(known: list[tuple[str, str]]) -> str:
    parts = [f"{phrase} {{{name}}}" for name, phrase in known]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _shorter(phrase: str) -> str:
    return phrase.removesuffix(" of").removeprefix("a ").removeprefix("an ")
