"""`unit_convert`: physical units by exact fractions, so that there and back is where one began."""

from fractions import Fraction
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from rapidfuzz import process

from seawall.toolkit.numbers import decimal_text, fraction_of
from seawall.toolkit.refusal import invalid, shown

_Name = Annotated[str, Field(min_length=1, max_length=40)]


class Unit(NamedTuple):
    """A unit as a multiple of its dimension's base, from where that begins to count."""

    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)
    exact: bool = True


def unit_convert(
    value: Annotated[float | str, Field(description="A number, or a decimal number as text.")],
    from_unit: Annotated[_Name, Field(description="Such as mi, kg, degF, MiB, km/h, kWh, psi.")],
    to_unit: _Name,
) -> dict[str, Any]:
    """Convert between units, such as miles to km, exactly where the units allow it.

    Length, mass, temperature, area, volume, speed, time, data, energy, power, force, pressure,
    frequency, angle. A year or month is the mean one. Case matters where it tells units apart: Mb
    is a megabit, MB a megabyte.
    """
    amount = fraction_of(value, "value")
    source, target = unit(from_unit, "from_unit"), unit(to_unit, "to_unit")
    if source.dimension != target.dimension:
        raise invalid(
            "to_unit",
            f"{from_unit} is {source.dimension}, {to_unit} is {target.dimension}; units of"
            f" {source.dimension}: {', '.join(names(source.dimension))}",
        )
    if source.dimension == "temperature" and amount * source.factor + source.offset < 0:
        raise invalid("value", "value is below absolute zero")
    exact = source.exact and target.exact
    text, written = decimal_text(
        convert(amount, source, target), digits=20, most_places=60 if exact else 0
    )
    return {
        "value": text,
        "unit": to_unit,
        "exact": exact and written,
        "dimension": source.dimension,
    }


def convert(amount: Fraction, source: Unit, target: Unit) -> Fraction:
    """Convert exactly; both units must be of one dimension."""
    return (amount * source.factor + source.offset - target.offset) / target.factor


def unit(name: str, field: str) -> Unit:
    """Find a unit by symbol or name; raises the refusal of `field`, with what is near."""
    # There are two Greek letters for a millionth that look the same.
    bare = name.strip().replace("\N{GREEK SMALL LETTER MU}", "\N{MICRO SIGN}")
    if bare in _UNITS:
        return _UNITS[bare]
    same = {_UNITS[known] for known in _UNITS if known.lower() == bare.lower()}
    if len(same) == 1:
        return same.pop()
    if same:
        spellings = ", ".join(known for known in _UNITS if known.lower() == bare.lower())
        raise invalid(field, f"{shown(name)} may be any of {spellings}; mind the case")
    near = [found[0] for found in process.extract(bare[:40], _UNITS.keys(), limit=5)]
    raise invalid(field, f"unknown unit {shown(name)}; near: {', '.join(near)}")


def names(dimension: str) -> list[str]:
    """List the units of a dimension, each by its first name."""
    firsts: dict[Unit, str] = {}
    for name, found in _UNITS.items():
        if found.dimension == dimension:
            firsts.setdefault(found, name)
    return list(firsts.values())


_FACTORS: dict[str, dict[str, str]] = {
    "length": {
        "m meter meters metre metres": "1",
        "km kilometer kilometers kilometre kilometres": "1000",
        "cm centimeter centimeters centimetre centimetres": "0.01",
        "mm millimeter millimeters millimetre millimetres": "0.001",
        "um µm micrometer micrometers micron microns": "1e-6",
        "nm nanometer nanometers": "1e-9",
        "in inch inches": "0.0254",
        "ft foot feet": "0.3048",
        "yd yard yards": "0.9144",
        "mi mile miles": "1609.344",
        "nmi nautical_mile nautical_miles": "1852",
        "au astronomical_unit": "149597870700",
        "ly light_year light_years": "9460730472580800",
    },
    "mass": {
        "kg kilogram kilograms": "1",
        "g gram grams": "0.001",
        "mg milligram milligrams": "1e-6",
        "ug µg microgram micrograms": "1e-9",
        "t tonne tonnes metric_ton": "1000",
        "lb lbs pound pounds": "0.45359237",
        "oz ounce ounces": "0.028349523125",
        "st stone stones": "6.35029318",
        "short_ton": "907.18474",
        "long_ton": "1016.0469088",
        "ct carat carats": "0.0002",
    },
    "area": {
        "m2 m² square_meter square_meters": "1",
        "km2 km² square_kilometer square_kilometers": "1e6",
        "cm2 cm² square_centimeter": "1e-4",
        "mm2 mm² square_millimeter": "1e-6",
        "ha hectare hectares": "10000",
        "acre acres": "4046.8564224",
        "ft2 ft² sqft square_foot square_feet": "0.09290304",
        "in2 in² square_inch square_inches": "0.00064516",
        "yd2 yd² square_yard square_yards": "0.83612736",
        "mi2 mi² square_mile square_miles": "2589988.110336",
    },
    "volume": {
        "l L liter liters litre litres": "1",
        "ml mL milliliter milliliters millilitre millilitres": "0.001",
        "cl cL centiliter": "0.01",
        "dl dL deciliter": "0.1",
        "m3 m³ cubic_meter cubic_meters": "1000",
        "cm3 cm³ cc cubic_centimeter": "0.001",
        "ft3 ft³ cubic_foot cubic_feet": "28.316846592",
        "in3 in³ cubic_inch cubic_inches": "0.016387064",
        "gal us_gallon gallon gallons": "3.785411784",
        "qt us_quart quart quarts": "0.946352946",
        "pt us_pint pint pints": "0.473176473",
        "cup us_cup cups": "0.2365882365",
        "floz fl_oz fluid_ounce us_fluid_ounce": "0.0295735295625",
        "tbsp tablespoon tablespoons": "0.01478676478125",
        "tsp teaspoon teaspoons": "0.00492892159375",
        "imp_gal imperial_gallon imperial_gallons": "4.54609",
        "imp_pt imperial_pint imperial_pints": "0.56826125",
        "bbl barrel barrels": "158.987294928",
    },
    "speed": {
        "m/s mps meters_per_second": "1",
        "km/h kph kmh kilometers_per_hour": "5/18",
        "mph mi/h miles_per_hour": "0.44704",
        "kn kt knot knots": "463/900",
        "ft/s fps feet_per_second": "0.3048",
        "c speed_of_light": "299792458",
    },
    "time": {
        "s sec second seconds": "1",
        "ms millisecond milliseconds": "0.001",
        "us µs microsecond microseconds": "1e-6",
        "ns nanosecond nanoseconds": "1e-9",
        "min minute minutes": "60",
        "h hr hour hours": "3600",
        "d day days": "86400",
        "week weeks wk": "604800",
        "month months": "2629746",
        "year years yr": "31556952",
    },
    "data": {
        "bit bits b": "1/8",
        "B byte bytes": "1",
        "kbit kb kilobit kilobits": "125",
        "Mbit Mb megabit megabits": "125e3",
        "Gbit Gb gigabit gigabits": "125e6",
        "Tbit Tb terabit terabits": "125e9",
        "kB KB kilobyte kilobytes": "1e3",
        "MB megabyte megabytes": "1e6",
        "GB gigabyte gigabytes": "1e9",
        "TB terabyte terabytes": "1e12",
        "PB petabyte petabytes": "1e15",
        "KiB kibibyte kibibytes": "1024",
        "MiB mebibyte mebibytes": "1048576",
        "GiB gibibyte gibibytes": "1073741824",
        "TiB tebibyte tebibytes": "1099511627776",
        "PiB pebibyte pebibytes": "1125899906842624",
    },
    "energy": {
        "J joule joules": "1",
        "kJ kilojoule kilojoules": "1e3",
        "MJ megajoule megajoules": "1e6",
        "Wh watt_hour watt_hours": "3600",
        "kWh kilowatt_hour kilowatt_hours": "3600000",
        "MWh megawatt_hour megawatt_hours": "3600000000",
        "cal calorie calories": "4.184",
        "kcal kilocalorie kilocalories": "4184",
        "BTU btu": "1055.05585262",
        "eV electronvolt electronvolts": "1.602176634e-19",
        "ft_lbf foot_pound foot_pounds": "1.3558179483314004",
    },
    "power": {
        "W watt watts": "1",
        "kW kilowatt kilowatts": "1e3",
        "MW megawatt megawatts": "1e6",
        "mW milliwatt milliwatts": "1e-3",
        "hp horsepower": "745.69987158227022",
        "PS metric_horsepower": "735.49875",
    },
    "force": {
        "N newton newtons": "1",
        "kN kilonewton kilonewtons": "1e3",
        "lbf pound_force": "4.4482216152605",
        "kgf kilogram_force": "9.80665",
    },
    "pressure": {
        "Pa pascal pascals": "1",
        "hPa hectopascal hectopascals": "100",
        "kPa kilopascal kilopascals": "1e3",
        "MPa megapascal megapascals": "1e6",
        "bar bars": "1e5",
        "mbar millibar millibars": "100",
        "atm atmosphere atmospheres": "101325",
        "torr Torr": "101325/760",
        "mmHg": "133.322387415",
        "inHg": "3386.388640341",
    },
    "frequency": {
        "Hz hertz": "1",
        "kHz kilohertz": "1e3",
        "MHz megahertz": "1e6",
        "GHz gigahertz": "1e9",
        "rpm": "1/60",
    },
    "angle": {
        "deg degree degrees °": "1",
        "grad gradian gradians gon": "0.9",
        "turn turns revolution revolutions": "360",
        "arcmin arcminute arcminutes": "1/60",
        "arcsec arcsecond arcseconds": "1/3600",
    },
}

_PI = Fraction("3.14159265358979323846264338327950288419716939937510")
_ZERO_CELSIUS = Fraction("273.15")
_FAHRENHEIT = Fraction(5, 9)


def _table() -> dict[str, Unit]:
    units = {
        name: Unit(dimension, Fraction(factor))
        for dimension, factors in _FACTORS.items()
        for spellings, factor in factors.items()
        for name in spellings.split()
    }
    zero_fahrenheit = _ZERO_CELSIUS - 32 * _FAHRENHEIT
    others = {
        "K kelvin kelvins": Unit("temperature", Fraction(1)),
        "degC °C C celsius": Unit("temperature", Fraction(1), _ZERO_CELSIUS),
        "degF °F F fahrenheit": Unit("temperature", _FAHRENHEIT, zero_fahrenheit),
        "degR °R rankine": Unit("temperature", _FAHRENHEIT),
        # A pound on a square inch, by the standard fall: the decimal expansion is endless.
        "psi": Unit("pressure", Fraction("4.4482216152605") / Fraction("0.00064516")),
        "rad radian radians": Unit("angle", 180 / _PI, exact=False),
        "mrad milliradian milliradians": Unit("angle", Fraction(180, 1000) / _PI, exact=False),
    }
    return units | {name: one for spellings, one in others.items() for name in spellings.split()}


_UNITS = _table()
